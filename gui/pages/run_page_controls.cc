// SPDX-License-Identifier: GPL-3.0-or-later
// What of a run can be started, paused, stopped or resumed from its page, and why not.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>

#include "gui/control/run_start.h"
#include "gui/control/tessera_program.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/run_page.h"
#include "gui/run_views/start_dialog.h"

namespace tessera::gui {

// Why a run cannot be told what to do now; empty where it can.
QString RunPage::whyNotTold(bool goes_on, bool stopping) const {
  if (session_.run()->folder().empty()) return Words::tr("no run is open");
  if (session_.isTelling()) return Words::tr("the run is being told something");
  if (session_.run()->ranks()->running() == 0) return Words::tr("no rank of the run goes on");
  if (!goes_on) return Words::tr("the run is on another host, which is not reached");
  return stopping ? Words::tr("the run has been asked to stop") : QString();
}

void RunPage::showControls() {
  const RunFollower& run = *session_.run();
  const bool goes_on =
      session_.run()->ranks()->running() > 0 && !session_.isTelling() && session_.canTell();
  const bool stopping = goes_on && run.stopRequested();
  const bool pausing = goes_on && !stopping && run.pauseRequested();
  const bool starts = starting_.isStarting(), prepares = preparing_.isPreparing();
  const QString starting = Words::tr("a run is being started");
  allow(*start_, session_.document().valid() && !starts && !prepares,
        starts || prepares ? starting : Words::tr("no plan answers the question"));
  allow(*quickstart_, !starts, starting);
  quickstart_->setText(prepares ? Words::tr("Cancel the &quickstart")
                                : Words::tr("Try the &quickstart..."));
  start_->setText(starts ? Words::tr("Starting...") : Words::tr("Star&t a run..."));
  const QString why = whyNotTold(goes_on, stopping);
  allow(*pause_, goes_on && !stopping && !pausing,
        why.isEmpty() ? Words::tr("the run has been asked to pause") : why);
  allow(*go_, pausing, why.isEmpty() ? Words::tr("the run does not pause") : why);
  allow(*stop_, goes_on && !stopping, why);
  stop_->setText(stopping ? Words::tr("Stopping...") : Words::tr("&Stop the run"));
  const QString why_ended = whyNotResumedNow(starts || prepares ? starting : QString());
  allow(*resume_, why_ended.isEmpty(), why_ended);
  for (MessageBar* bar : {rules_, gaps_}) bar->setStale(session_.isHeldAgainstStale());
}

// Empty where it can be.
QString RunPage::whyNotResumedNow(const QString& starting) const {
  RunFollower& run = *session_.run();
  if (run.folder().empty()) return Words::tr("no run is open");
  if (!starting.isEmpty()) return starting;
  if (run.isLoading()) return Words::tr("the folder is being read");
  if (run.ranks()->running() > 0) return Words::tr("the run has not ended");
  const QString why = whyNotResumed(run.summary().state, run.isCopy(), run.left());
  return why.isEmpty() ? whyNoProgram() : why;
}

// Whose run file it is, and what it calls, is not known here: the command is shown first.
void RunPage::askToResume() {
  const RunFollower& run = *session_.run();
  const QString folder =
      QFileInfo(QString::fromStdString(run.folder().string())).absoluteFilePath();
  const ResumeRequest request{.folder = folder, .on_processors = run.isOnProcessors()};
  const std::int64_t kept = *run.left()->checkpoint;
  const std::vector<std::int64_t>& done = session_.run()->steps()->steps();
  const QString again =
      done.empty() || done.back() <= kept ? QString()
      : done.back() == kept + 1
          ? Words::tr("Step %1 is done once more, and its metrics and samples are replaced. ")
                .arg(done.back())
          : Words::tr(
                "Steps %1 to %2 are done once more, and their metrics and samples are "
                "replaced. ")
                .arg(kept + 1)
                .arg(done.back());
  const QString question =
      Words::tr(
          "Go on after step %1, which its newest checkpoint holds? %2This command does it, "
          "and relative paths in the run's files count from %3:")
          .arg(QString::number(kept), again, QDir::currentPath());
  const auto answer = QMessageBox::question(this, Words::tr("Resume the run"),
                                            question + "\n\n" + commandText(wordsOf(request)),
                                            QMessageBox::Yes | QMessageBox::No, QMessageBox::Yes);
  // The run may have been resumed elsewhere while the question stood.
  if (answer != QMessageBox::Yes || !resume_->isEnabled()) return;
  message_->say(Words::tr("Resuming %1").arg(folder), Tone::calm);
  starting_.resume(request);
  showControls();
}

// Nothing starts but by the dialog's button.
void RunPage::askToStart() {
  StartDialog dialog(session_.plan(), typed_, this);
  const bool starts = dialog.exec() == QDialog::Accepted;
  typed_ = dialog.request();
  if (!starts) return;
  emit asked();
  start(typed_);
}

void RunPage::start(const StartRequest& request) {
  message_->say(Words::tr("Starting in %1").arg(request.folder), Tone::calm);
  starting_.begin(request);
  showControls();
}

void RunPage::askForQuickstart() {
  if (preparing_.isPreparing()) return preparing_.cancel();
  const QString above =
      QFileDialog::getExistingDirectory(this, Words::tr("Where to make the quickstart's folder"));
  if (above.isEmpty()) return;
  emit asked();
  preparing_.begin(newFolderIn(above, "quickstart"));
}

void RunPage::pause() {
  session_.tell(RunSignal::pause);
  showControls();
}

void RunPage::goOn() {
  session_.tell(RunSignal::go);
  showControls();
}

void RunPage::askToStop() {
  const auto answer =
      QMessageBox::question(this, Words::tr("Stop the run"),
                            Words::tr("Ask all ranks to end after the phase that they are in?"),
                            QMessageBox::Yes | QMessageBox::No, QMessageBox::No);
  if (answer == QMessageBox::Yes && session_.canTell()) session_.tell(RunSignal::stop);
  showControls();
}

}  // namespace tessera::gui
