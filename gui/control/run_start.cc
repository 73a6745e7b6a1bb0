// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/run_start.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QProcess>
#include <algorithm>
#include <chrono>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
#include "gui/control/run_log.h"
#include "gui/control/tessera_program.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "simulator/timeline/rank_status.h"

namespace tessera::gui {
namespace {

constexpr int kLookMs = 200;
constexpr qint64 kMostSaid = 64 << 10;  // bytes of the log that are told

QString planFile(const QString& folder) { return folder + ".plan.json"; }

// What speaks against the run; of the end of what the file has behind `begin`.
QString said(const QString& file, qint64 begin) {
  QFile log(file);
  if (!log.open(QIODevice::ReadOnly)) return {};
  log.seek(std::max(begin, log.size() - kMostSaid));
  return refusalIn(QString::fromUtf8(log.readAll()));
}

QString quoted(const QString& word) {
  static const QString plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-./=:,+@%";
  for (const QChar letter : word) {
    if (!plain.contains(letter)) return "'" + QString(word).replace("'", "'\\''") + "'";
  }
  return word.isEmpty() ? "''" : word;
}

}  // namespace

QString newFolderIn(const QString& above, const QString& name) {
  QString free = name;
  for (int i = 2; QDir(above).exists(free); ++i) free = QString("%1-%2").arg(name).arg(i);
  return QDir(above).filePath(free);
}

QString whyNoStart(const StartRequest& request) {
  if (!request.plan) return Words::tr("There is no plan to run.");
  if (request.config.isEmpty()) return Words::tr("A run file is missing: a run.yaml, or a preset.");
  Problems problems;
  if (!find_config(request.config.toStdString(), "runs", ".yaml", problems)) {
    return problemsText(problems);
  }
  for (const QString& setting : request.settings) {
    if (setting.indexOf('=') < 1) return Words::tr("%1: expected KEY=VALUE").arg(setting);
  }
  if (request.folder.isEmpty()) return Words::tr("A folder for the run is missing.");
  if (QFileInfo::exists(request.folder)) {
    return Words::tr("%1 exists: a run begins in a new folder.").arg(request.folder);
  }
  for (const QString& beside : {logFile(request.folder), planFile(request.folder)}) {
    if (QFileInfo::exists(beside))
      return Words::tr("%1 exists: the run would write it.").arg(beside);
  }
  if (!QFileInfo(QFileInfo(request.folder).absolutePath()).isWritable()) {
    return Words::tr("%1 is no folder that can be written.")
        .arg(QFileInfo(request.folder).absolutePath());
  }
  return whyNoProgram();
}

QStringList wordsOf(const StartRequest& request) {
  const bool on_processors = is_cpu(request.plan->cluster.device);
  QStringList words{"run",      planFile(request.folder),      "--config", request.config,
                    "--device", on_processors ? "cpu" : "cuda"};
  for (const QString& setting : request.settings) words << "--set" << setting;
  return words << "-o" << request.folder;
}

QStringList wordsOf(const ResumeRequest& request) {
  const QString folder = request.folder + "/";
  return {"run",      folder + "plan.json",
          "--config", folder + "run.yaml",
          "--device", request.on_processors ? "cpu" : "cuda",
          "-o",       request.folder,
          "--resume"};
}

QString commandText(const QStringList& words) {
  QStringList text{"tessera"};
  for (const QString& word : words) text << quoted(word);
  return text.join(' ');
}

RunStart::RunStart(QObject* parent) : QObject(parent) {
  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, this, &RunStart::look);
}

void RunStart::begin(const StartRequest& request) {
  folder_ = request.folder;
  plan_file_ = planFile(folder_);
  try {
    write_plan(*request.plan, plan_file_.toStdString());
  } catch (const Error& error) {
    emit refused(problemsText(error.problems()));
    return;
  }
  launch(wordsOf(request));
}

void RunStart::resume(const ResumeRequest& request) {
  folder_ = request.folder;
  plan_file_.clear();
  launch(wordsOf(request));
}

void RunStart::launch(const QStringList& words) {
  QProcess process;
  process.setProgram(tesseraProgram());
  process.setArguments(words);
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(logFile(folder_), QIODevice::Append);
  process.setStandardErrorFile(logFile(folder_), QIODevice::Append);
  log_size_ = QFileInfo(logFile(folder_)).size();
  began_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                  .count();
  if (!process.startDetached(&pid_)) {
    end();
    emit refused(
        Words::tr("%1 cannot be started: %2").arg(process.program(), process.errorString()));
    return;
  }
  timer_.start();
}

void RunStart::look() {
  const bool alive = is_alive(static_cast<int>(pid_));  // first: what it leaves is then complete
  const bool ranks =
      std::ranges::any_of(read_rank_statuses(folder_.toStdString()),
                          [&](const RankStatus& rank) { return rank.phase_since_ns >= began_ns_; });
  if (ranks) {
    end();
    emit started(folder_);
  } else if (!alive) {
    end();
    const QString why = said(logFile(folder_), log_size_);
    if (!QFileInfo::exists(folder_)) QFile::remove(logFile(folder_));  // nothing is left of it
    emit refused(why.isEmpty() ? Words::tr("tessera run ended without a word") : why);
  }
}

void RunStart::end() {
  timer_.stop();
  pid_ = 0;
  if (!plan_file_.isEmpty()) QFile::remove(plan_file_);
}

}  // namespace tessera::gui
