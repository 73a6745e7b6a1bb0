// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/quickstart.h"

#include <QDir>
#include <memory>

#include "cost_models/documents/problem.h"
#include "gui/control/tessera_program.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr int kLastWordsMs = 2000;  // of a command that is told to end

}  // namespace

std::vector<QuickstartStep> quickstartSteps(const QString& folder) {
  const QString model = folder + "/model", constants = folder + "/calibration.json";
  return {{Words::tr("making a tiny model"),
           {"init-model", "--model", "tiny-qwen2-digits", "--digits", "--seed", "1", "-o", model}},
          {Words::tr("making prompts"),
           {"make-data", "--task", "reverse", "--digits", "3", "--count", "1024", "--seed", "1",
            "-o", folder + "/prompts.jsonl"}},
          {Words::tr("measuring this machine, about half a minute"),
           {"calibrate", "--quick", "--device", "cpu", "--ranks", "4", "-o", constants}},
          {Words::tr("planning"),
           {"plan", "--model", model, "--cluster", "local-cpu", "--workload", "grpo-digits",
            "--calibration", constants, "--fix", "actor.tp=2", "actor.pp=2", "rollout.tp=2",
            "rollout.dp=2", "-o", folder + "/plan.json"}}};
}

Quickstart::Quickstart(QObject* parent) : QObject(parent) {
  process_.setProcessChannelMode(QProcess::MergedChannels);
  process_.setStandardInputFile(QProcess::nullDevice());
  connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    take(status == QProcess::NormalExit ? code : -1);
  });
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) take(-1);
  });
}

Quickstart::~Quickstart() { end(); }

void Quickstart::begin(const QString& folder) {
  folder_ = folder;
  if (tesseraProgram().isEmpty()) {
    emit refused(
        Words::tr("The program tessera is not here: neither beside this window nor on PATH."));
    return;
  }
  if (!QDir().mkpath(folder_)) {
    emit refused(Words::tr("%1 is no folder that can be written.").arg(folder_));
    return;
  }
  steps_ = quickstartSteps(folder_);
  step_ = 0;
  next();
}

void Quickstart::next() {
  emit doing(Words::tr("Quickstart, step %1 of %2: %3")
                 .arg(step_ + 1)
                 .arg(steps_.size() + 1)
                 .arg(steps_[step_].doing));
  process_.start(tesseraProgram(), steps_[step_].words);
}

void Quickstart::take(int code) {
  if (!isPreparing()) return;
  const QString printed = QString::fromUtf8(process_.readAll());
  if (code == 0 && ++step_ < steps_.size()) return next();
  if (code == 0) return finish();
  const QString said = refusalIn(printed);
  const QString what = steps_[step_].words.front();
  steps_.clear();
  emit refused(said.isEmpty() ? Words::tr("tessera %1: %2").arg(what, process_.errorString())
                              : Words::tr("tessera %1: %2").arg(what, said));
}

void Quickstart::finish() {
  steps_.clear();
  Problems problems;
  auto plan = read_plan((folder_ + "/plan.json").toStdString(), problems);
  if (!plan) {
    emit refused(problemsText(problems));
    return;
  }
  emit prepared({std::make_shared<const Plan>(*std::move(plan)),
                 "grpo-digits",
                 {"data.train_files=[" + folder_ + "/prompts.jsonl]"},
                 folder_ + "/run"});
}

void Quickstart::cancel() {
  if (!isPreparing()) return;
  end();
  emit refused(Words::tr("It was cancelled; what was made is in %1.").arg(folder_));
}

// A command ends the ranks that it has started where it is asked to end.
void Quickstart::end() {
  steps_.clear();
  if (process_.state() == QProcess::NotRunning) return;
  process_.terminate();
  if (!process_.waitForFinished(kLastWordsMs)) process_.kill();
}

}  // namespace tessera::gui
