// SPDX-License-Identifier: GPL-3.0-or-later
// The phases of the run that is followed and of those that are drawn beside it, in one table.
#include <QHeaderView>
#include <QLabel>
#include <QStandardItemModel>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>
#include <vector>

#include "gui/document/words.h"
#include "gui/threads/newest.h"
#include "gui/views/table.h"
#include "gui/views/view.h"
#include "gui/watch/run_phases_model.h"
#include "gui/watch/run_settings.h"

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
  void readSettings();
  void showSettings(const std::vector<RunSettings>& settings);

  Session& session_;
  RunPhasesModel* model_;
  QLabel *says_, *settings_say_;
  QStandardItemModel* settings_;
  QTableView* settings_table_;
  std::vector<std::filesystem::path> read_;   // whose settings are shown
  Newest<std::vector<RunSettings>> reading_;  // last: it ends before anything else goes
};

RunPhasesView::RunPhasesView(Session& session)
    : session_(session),
      model_(new RunPhasesModel(this)),
      says_(new QLabel),
      settings_say_(new QLabel),
      settings_(new QStandardItemModel(this)),
      settings_table_(makeTable(settings_, Words::tr("Settings in which runs differ"))) {
  says_->setWordWrap(true);
  QTableView* table = makeTable(model_, Words::tr("Phases of runs"));
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addWidget(says_);
  layout->addWidget(table, 3);
  settings_say_->setWordWrap(true);
  layout->addWidget(settings_say_);
  settings_table_->verticalHeader()->hide();
  settings_table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  settings_table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  layout->addWidget(settings_table_, 2);
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
  readSettings();
  const QString means = Words::tr("Means over all steps but those of the warm-up.");
  says_->setText(model_->runs() > 1
                     ? means
                     : means + " " +
                           Words::tr("Draw another run beside this one (Ctrl+Shift+R) to have its "
                                     "phases here, too."));
}

// Of a run alone there is nothing to tell apart.
void RunPhasesView::readSettings() {
  const RunFollower& run = *session_.run();
  std::vector<std::filesystem::path> folders;
  if (!run.others().empty()) folders.push_back(run.folder());
  for (const RunFollower::Other& other : run.others()) folders.push_back(other.folder);
  if (folders == read_) return;
  read_ = folders;
  showSettings({});
  if (folders.empty()) return reading_.cancel();
  reading_.start(
      [folders] {
        std::vector<RunSettings> settings;
        for (const std::filesystem::path& folder : folders) {
          settings.push_back(settings_of_run(folder));
        }
        return settings;
      },
      [this](const std::vector<RunSettings>& settings) { showSettings(settings); });
}

void RunPhasesView::showSettings(const std::vector<RunSettings>& settings) {
  settings_->clear();
  const std::vector<SettingApart> apart = settings_apart(settings);
  QStringList header{Words::tr("Setting"), session_.run()->name()};
  for (const RunFollower::Other& other : session_.run()->others()) header << other.name;
  settings_->setHorizontalHeaderLabels(header);
  for (const SettingApart& setting : apart) {
    QList<QStandardItem*> row{new QStandardItem(setting.name)};
    for (const QString& value : setting.values) row << new QStandardItem(value);
    settings_->appendRow(row);
  }
  settings_table_->setVisible(!apart.empty());
  const bool known = std::ranges::none_of(settings, &RunSettings::empty);
  settings_say_->setVisible(!settings.empty());
  settings_say_->setText(!apart.empty() ? Words::tr("<b>Settings in which they differ</b>")
                         : known        ? Words::tr("Their run.yaml and plan.json say the same.")
                                        : Words::tr("Not all of them have a run.yaml or plan.json "
                                                           "to compare."));
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
