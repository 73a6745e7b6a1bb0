// SPDX-License-Identifier: GPL-3.0-or-later
// A run beside its prediction, as bars and as a table; rules on its metrics; what each rank does.
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "cost_models/documents/preset.h"
#include "gui/document/words.h"
#include "gui/views/chart.h"
#include "gui/views/elided_label.h"
#include "gui/views/stale_cover.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr QRgb kPredicted = 0xff8a8f98, kMeasured = 0xff0072b2;
constexpr int kPhaseRows = 10, kRows = 4;  // of tables, at least

QTableView* tableOf(QAbstractItemModel* model, const QString& name, int bad_role) {
  QTableView* table = makeTable(model, name, bad_role);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  return table;
}

/// Its first rows are in sight however low the window is: the page then scrolls.
void keepRowsInSight(QTableView* table, int most) {
  const auto keep = [=] {
    const int row = table->verticalHeader()->defaultSectionSize();
    const int rows = std::clamp(table->model()->rowCount(), 1, most);
    table->setMinimumHeight(table->horizontalHeader()->sizeHint().height() + rows * row +
                            2 * table->frameWidth());
  };
  QObject::connect(table->model(), &QAbstractItemModel::modelReset, table, keep);
  QObject::connect(table->model(), &QAbstractItemModel::rowsInserted, table, keep);
  keep();
}

/// Hatched while what the run is held against answers an earlier question.
QWidget* judged(QWidget* view, Session& session) {
  auto* cover = new StaleCover(view);
  const Session* shown = &session;
  const auto show = [=] { cover->setStale(shown->isHeldAgainstStale()); };
  QObject::connect(&session, &Session::documentChanged, cover, show);
  QObject::connect(session.run(), &RunFollower::polled, cover, show);
  return view;
}

// Phases that took or should take time, the largest prediction or measurement first; the step has
// its own line on top of the page.
void drawGaps(Chart& chart, const ComparisonModel& model, const QString& whose) {
  std::vector<PhaseComparison> rows = model.comparison().phases;
  std::erase_if(rows, [](const PhaseComparison& row) {
    return row.phase == "step" || (row.predicted_s <= 0 && row.measured_s <= 0);
  });
  if (rows.empty()) {
    chart.showNothing(Words::tr("No plan beside this run: nothing to compare with"));
    return;
  }
  chart.setMinimumHeight(62 + 14 * static_cast<int>(rows.size()));  // a line for each name
  QStringList names;
  ChartBars predicted{Words::tr("predicted"), QColor(kPredicted), {}, {}};
  ChartBars measured{Words::tr("measured"), QColor(kMeasured), {}, {}};
  for (const PhaseComparison& row : rows) {
    names << QString::fromStdString(row.phase);
    predicted.values.push_back(row.predicted_s);
    predicted.errors.push_back(row.predicted_deviation_s);
    measured.values.push_back(row.measured_s);
    measured.errors.push_back(row.measured_deviation_s);
  }
  const QString bars = Words::tr(
      "seconds; error bars: one standard deviation of the prediction, and of "
      "the mean over the measured steps");
  chart.showBeside(whose.isEmpty() ? bars : bars + "; " + whose, names, {predicted, measured});
}

QWidget* makeGaps(Session& session) {
  auto* chart = new Chart(Words::tr("Predicted beside measured, by phase"));
  RunFollower* run = session.run();
  const ComparisonModel* model = run->comparison();
  QObject::connect(model, &QAbstractItemModel::modelReset, chart,
                   [=] { drawGaps(*chart, *model, run->whoseTimes()); });
  QObject::connect(run, &RunFollower::folderChanged, chart, &Chart::fit);
  return judged(chart, session);
}

/// A row of a phase is the phase that all views look at.
QWidget* makeComparison(Session& session) {
  ComparisonModel* model = session.run()->comparison();
  QTableView* table =
      tableOf(model, Words::tr("Prediction and measurement"), ComparisonModel::BadRole);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  // Names give way to numbers.
  table->horizontalHeader()->setSectionResizeMode(ComparisonModel::What, QHeaderView::Stretch);
  table->horizontalHeader()->setStretchLastSection(false);
  table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);  // the width stays
  keepRowsInSight(table, kPhaseRows);
  Session* shown = &session;
  QObject::connect(table, &QTableView::clicked, shown, [=](const QModelIndex& at) {
    const int phase = at.data(ComparisonModel::PhaseRole).toInt();
    if (phase >= 0) shown->look({shown->view().rank, static_cast<Phase>(phase)});
  });
  QObject::connect(shown, &Session::viewChanged, table, [=](const ViewState& view) {
    for (int row = 0; view.phase && row < model->rowCount(); ++row) {
      const int phase = model->index(row, 0).data(ComparisonModel::PhaseRole).toInt();
      if (phase == static_cast<int>(*view.phase)) table->selectRow(row);
    }
  });
  return judged(table, session);
}

// Why rules on times say nothing, where they do not.
QWidget* makeTimesNote(Session& session) {
  auto* note = new ElidedLabel;
  note->setAccessibleName(Words::tr("Why times are not judged"));
  const RunFollower* run = session.run();
  QObject::connect(run, &RunFollower::polled, note, [=] {
    const QString why = run->whyTimesAreNotJudged();
    const QString text = why.isEmpty() ? QString() : Words::tr("times are not judged: %1").arg(why);
    note->setText(text);
    note->setToolTip(text);
  });
  return note;
}

QWidget* makeRules(Session& session) {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  RuleModel* rules = session.run()->rules();
  auto* profile = new QComboBox;
  profile->setAccessibleName(Words::tr("Profile of rules"));
  for (const std::string& name : preset_names("rules", ".json")) {
    profile->addItem(QString::fromStdString(name));
  }
  profile->setCurrentText("default");
  auto* top = new QHBoxLayout;
  top->addWidget(new QLabel(Words::tr("<b>Rules</b>, judged on the last step, of")));
  top->addWidget(profile);
  top->addWidget(makeTimesNote(session), 1);
  layout->addLayout(top);
  QTableView* table = tableOf(rules, Words::tr("Rules"), RuleModel::BadRole);
  for (const int column : {RuleModel::Metric, RuleModel::Advice}) {
    table->horizontalHeader()->setSectionResizeMode(column, QHeaderView::Stretch);
  }
  table->horizontalHeader()->setMinimumSectionSize(40);
  table->horizontalHeader()->setStretchLastSection(false);  // it has its share
  // A rule's name says most of its metric, which its tooltip has.
  QObject::connect(table->horizontalHeader(), &QHeaderView::geometriesChanged, table, [table] {
    constexpr int kRoomForAll = 700;
    table->setColumnHidden(RuleModel::Metric, table->width() < kRoomForAll);
  });
  table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);  // the width stays
  keepRowsInSight(table, kRows);
  layout->addWidget(table, 1);
  QObject::connect(profile, &QComboBox::currentTextChanged, rules,
                   [=](const QString& name) { rules->setProfile(name); });
  return judged(panel, session);
}

const RegisteredView kGapsView({"gaps", Place::tables, 0, 4, "", makeGaps, nullptr,
                                [](Session& session) {
                                  const RunComparison& run = session.run()->comparison()->run();
                                  return run.times.phases.empty() ? std::string() : to_json(run);
                                }});
const RegisteredView kComparisonView(
    {"comparison", Place::tables, 1, 3,
     QT_TRANSLATE_NOOP("Words",
                       "<b>Predicted and measured</b>, mean over the steps after "
                       "the warm-up"),
     makeComparison, [](Session& session) { return csv_of(*session.run()->comparison()); }});
const RegisteredView kRulesView({"rules", Place::tables, 2, 2, "", makeRules,
                                 [](Session& session) { return csvOf(*session.run()->rules()); }});
const RegisteredView kRanksView({"ranks", Place::tables, 3, 2,
                                 QT_TRANSLATE_NOOP("Words", "<b>Ranks</b>"),
                                 [](Session& session) -> QWidget* {
                                   QTableView* table = tableOf(session.run()->ranks(),
                                                               Words::tr("Ranks of the run"),
                                                               RankStateModel::BadRole);
                                   keepRowsInSight(table, kRows);
                                   return table;
                                 },
                                 [](Session& session) { return csvOf(*session.run()->ranks()); }});

}  // namespace
}  // namespace tessera::gui
