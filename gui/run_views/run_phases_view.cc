// SPDX-License-Identifier: GPL-3.0-or-later
// The phases of the run that is followed and of those that are drawn beside it, in one table.
#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/views/table.h"
#include "gui/views/view.h"
#include "gui/watch/run_phases_model.h"

namespace tessera::gui {
namespace {

void fill(RunPhasesModel& model, Session& session) {
  RunFollower& run = *session.run();
  std::vector<RunPhasesModel::Run> runs;
  if (!run.folder().empty()) runs.push_back({run.name(), &run.steps()->columns()});
  for (const RunFollower::Other& other : run.others()) {
    if (!runs.empty()) runs.push_back({other.name, &other.steps->columns()});
  }
  model.setRuns(runs);
}

class RunPhasesView : public QWidget {
 public:
  explicit RunPhasesView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    show();
  }

 private:
  void show();

  Session& session_;
  RunPhasesModel* model_;
  QLabel* says_;
};

RunPhasesView::RunPhasesView(Session& session)
    : session_(session), model_(new RunPhasesModel(this)), says_(new QLabel) {
  says_->setWordWrap(true);
  QTableView* table = makeTable(model_, Words::tr("Phases of runs"));
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addWidget(says_);
  layout->addWidget(table, 1);
  RunFollower* run = session.run();
  const auto again = [this] {
    if (isVisible()) show();
  };
  connect(run->steps(), &RunModel::stepsChanged, this, again);
  connect(run, &RunFollower::othersChanged, this, again);
  connect(run, &RunFollower::folderChanged, this, again);
}

void RunPhasesView::show() {
  fill(*model_, session_);
  const QString means =
      Words::tr("Means over the last %1 steps at most, without those of the warm-up.")
          .arg(RunPhasesModel::kMostSteps);
  says_->setText(model_->runs() > 1
                     ? means
                     : means + " " +
                           Words::tr("Draw another run beside this one (Ctrl+Shift+R) to have its "
                                     "phases here, too."));
}

const RegisteredView kRunPhasesView(
    {"run_phases", Place::run_tabs, 3, 1, QT_TRANSLATE_NOOP("Words", "Runs side by side"),
     [](Session& session) -> QWidget* { return new RunPhasesView(session); },
     [](Session& session) {
       RunPhasesModel model;
       fill(model, session);
       return csvOf(model);
     }});

}  // namespace
}  // namespace tessera::gui
