// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/export/file_writing.h"

#include <QFileInfo>
#include <exception>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/documents/text_parts.h"
#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {

FileWriting::FileWriting(QObject* parent) : QObject(parent) {}

void FileWriting::start(const LongText& text, const QString& file) {
  const auto job = std::make_shared<Job>();
  job->text = text;
  job->file = file;
  jobs_.push_back(job);
  if (!isBusy()) next();
}

void FileWriting::cancel() {
  work_.cancel();
  jobs_.clear();
  emit changed();
}

QString FileWriting::progress() const {
  if (!isBusy()) return {};
  const Job& job = *jobs_.front();
  return Words::tr("Writing %1: %2 %")
      .arg(QFileInfo(job.file).fileName())
      .arg(100 * job.done, 0, 'f', 0);
}

// Precondition: there is one.
void FileWriting::next() {
  const auto work = [job = jobs_.front()](const std::stop_token& stop) -> QString {
    try {
      write_text_parts(job->file.toStdString(), [&](const auto& take) {
        job->text([&](std::string_view part, double done) {
          end_if_stopped(stop);
          take(part);
          job->done = done;
        });
        end_if_stopped(stop);
      });
    } catch (const Error& error) {
      return problemsText(error.problems());
    } catch (const std::exception& fault) {
      return QString("%1: %2").arg(job->file, QString::fromUtf8(fault.what()));
    }
    return {};
  };
  work_.start(work, [this](const QString& problems) {
    const QString file = jobs_.front()->file;
    jobs_.pop_front();
    if (!jobs_.empty()) next();
    problems.isEmpty() ? emit written(file) : emit refused(problems);
    emit changed();
  });
  emit changed();
}

}  // namespace tessera::gui
