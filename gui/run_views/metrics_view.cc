// SPDX-License-Identifier: GPL-3.0-or-later
// Every metric of a run: a list to search and to choose from, and a chart for each that is chosen.
// The charts share the steps in sight, the crosshair and the smoothing.
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QShortcut>
#include <QSlider>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <map>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/run_views/metric_chart.h"
#include "gui/run_views/run_charts.h"
#include "gui/views/table.h"
#include "gui/views/view.h"
#include "gui/watch/metric_list_model.h"

namespace tessera::gui {
namespace {

constexpr int kColumns = 2, kLeastChartHeight = 190;
constexpr int kMostSmoothing = 99;  // hundredths
constexpr QRgb kMetric = 0xff0072b2;

class MetricsView : public QWidget {
 public:
  explicit MetricsView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    if (std::exchange(late_, false)) draw();
  }

 private:
  QWidget* choices();
  QWidget* pictures();
  QWidget* smoothing();
  void hear(MetricChart* chart);
  void toggle(const QModelIndex& index);
  void arrange();
  void draw();
  void drawOne(const std::string& metric, MetricChart& chart);
  void share(const MetricChart& moved);
  void point(std::optional<double> step);

  RunFollower& run_;
  MetricListModel* metrics_;
  QSortFilterProxyModel* found_;
  QLineEdit* search_;
  QTableView* table_;
  QSlider* smoothing_;
  QLabel* nothing_;
  QGridLayout* grid_ = nullptr;
  std::map<std::string, MetricChart*> charts_;
  bool late_ = true;      // something came while nobody looked
  bool sharing_ = false;  // charts are set by the view itself
};

MetricsView::MetricsView(Session& session)
    : run_(*session.run()),
      metrics_(new MetricListModel(&run_, this)),
      found_(new QSortFilterProxyModel(this)),
      search_(new QLineEdit),
      table_(nullptr),
      smoothing_(new QSlider(Qt::Horizontal)),
      nothing_(new QLabel) {
  found_->setSourceModel(metrics_);
  found_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  found_->setFilterKeyColumn(MetricListModel::Name);
  table_ = makeTable(found_, Words::tr("Metrics of the run"), MetricListModel::BadRole);
  auto* split = new QSplitter;
  split->setObjectName("metrics");
  split->setChildrenCollapsible(false);
  split->addWidget(choices());
  split->addWidget(pictures());
  split->setSizes({300, 980});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addWidget(split);
  connect(metrics_, &MetricListModel::drawnChanged, this, &MetricsView::arrange);
  connect(run_.steps(), &RunModel::stepsChanged, this, &MetricsView::draw);
  connect(run_.rules(), &QAbstractItemModel::modelReset, this, &MetricsView::draw);
  connect(&run_, &RunFollower::othersChanged, this, &MetricsView::draw);
  connect(&run_, &RunFollower::folderChanged, this, [this] {
    for (const auto& [metric, chart] : charts_) chart->fit();
  });
  arrange();
}

QWidget* MetricsView::choices() {
  search_->setPlaceholderText(Words::tr("Search metrics; Enter draws the first"));
  search_->setAccessibleName(Words::tr("Search of the metrics"));
  search_->setClearButtonEnabled(true);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->verticalHeader()->hide();
  QHeaderView* header = table_->horizontalHeader();
  header->setStretchLastSection(false);
  header->setSectionResizeMode(MetricListModel::Name, QHeaderView::Stretch);
  header->setSectionResizeMode(MetricListModel::Last, QHeaderView::ResizeToContents);
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(search_);
  layout->addWidget(table_, 1);
  connect(search_, &QLineEdit::textChanged, found_, &QSortFilterProxyModel::setFilterFixedString);
  connect(search_, &QLineEdit::returnPressed, this, [this] { toggle(found_->index(0, 0)); });
  connect(table_, &QTableView::activated, this, &MetricsView::toggle);
  auto* find = new QShortcut(QKeySequence::Find, this);
  connect(find, &QShortcut::activated, search_,
          [this] { search_->setFocus(Qt::ShortcutFocusReason); });
  return panel;
}

QWidget* MetricsView::smoothing() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(Words::tr("S&moothing"));
  label->setBuddy(smoothing_);
  auto* weight = new QLabel("0.00");
  weight->setMinimumWidth(weight->fontMetrics().horizontalAdvance("0.000"));
  smoothing_->setObjectName("smoothing");
  smoothing_->setRange(0, kMostSmoothing);
  smoothing_->setMaximumWidth(240);
  smoothing_->setAccessibleName(Words::tr("Smoothing"));
  smoothing_->setToolTip(
      Words::tr("Weight of the steps before in an exponential moving mean; 0 = none"));
  layout->addWidget(label);
  layout->addWidget(smoothing_);
  layout->addWidget(weight);
  layout->addStretch(1);
  connect(smoothing_, &QSlider::valueChanged, this, [this, weight](int hundredths) {
    weight->setText(QString::number(hundredths / 100.0, 'f', 2));
    draw();
  });
  return bar;
}

QWidget* MetricsView::pictures() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  auto* inside = new QWidget;
  grid_ = new QGridLayout(inside);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setSpacing(4);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  nothing_->setAlignment(Qt::AlignCenter);
  layout->addWidget(smoothing());
  layout->addWidget(nothing_);
  layout->addWidget(scroll, 1);
  return panel;
}

void MetricsView::toggle(const QModelIndex& index) {
  if (!index.isValid()) return;
  const QModelIndex name = found_->mapToSource(index).siblingAtColumn(MetricListModel::Name);
  const bool drawn = name.data(Qt::CheckStateRole).toInt() == Qt::Checked;
  metrics_->setData(name, drawn ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
}

// Charts that stay keep what they show; those that are new are drawn.
void MetricsView::arrange() {
  const std::vector<std::string> drawn = metrics_->drawn();
  std::erase_if(charts_, [&](const auto& chart) {
    if (std::find(drawn.begin(), drawn.end(), chart.first) != drawn.end()) return false;
    delete chart.second;
    return true;
  });
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    MetricChart*& chart = charts_[drawn[i]];
    if (chart == nullptr) {
      chart = new MetricChart(toText(drawn[i]));
      chart->setMinimumHeight(kLeastChartHeight);
      new ChartTurn(chart, run_.steps(),
                    [this, metric = drawn[i], chart = chart] { drawOne(metric, *chart); });
      hear(chart);
      if (isVisible()) chart->findChild<ChartTurn*>()->ask();
    }
    grid_->addWidget(chart, static_cast<int>(i) / kColumns, static_cast<int>(i) % kColumns);
  }
  const auto zoomed = std::find_if(charts_.begin(), charts_.end(),
                                   [](const auto& chart) { return !chart.second->isFitted(); });
  if (zoomed != charts_.end()) share(*zoomed->second);
  nothing_->setVisible(drawn.empty());
  nothing_->setText(run_.folder().empty()       ? Words::tr("No run is open")
                    : metrics_->rowCount() == 0 ? Words::tr("No step has been measured so far.")
                                                : Words::tr("Check a metric to draw it."));
  if (!isVisible()) late_ = true;
}

void MetricsView::hear(MetricChart* chart) {
  connect(chart, &MetricChart::pointedTo, this, &MetricsView::point);
  connect(chart->xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
          [this, chart] { share(*chart); });
}

void MetricsView::draw() {
  if (!isVisible()) {
    late_ = true;
    return;
  }
  for (const auto& [metric, chart] : charts_) chart->findChild<ChartTurn*>()->ask();
}

void MetricsView::drawOne(const std::string& metric, MetricChart& chart) {
  const bool shared = std::exchange(sharing_, true);
  const QString name = toText(metric).section('/', -1);
  chart.showRuns(linesOf(run_, metric, name, QColor(kMetric)), smoothing_->value() / 100.0);
  sharing_ = shared;
}

// The steps that one chart shows all show.
void MetricsView::share(const MetricChart& moved) {
  if (std::exchange(sharing_, true)) return;
  for (const auto& [metric, chart] : charts_) {
    if (chart == &moved) continue;
    if (moved.isFitted()) {
      chart->fit();
    } else {
      chart->xAxis->setRange(moved.xAxis->range());
      chart->replot(QCustomPlot::rpQueuedReplot);
    }
  }
  sharing_ = false;
}

void MetricsView::point(std::optional<double> step) {
  for (const auto& [metric, chart] : charts_) chart->point(step);
}

const RegisteredView kMetricsView(
    {"metrics", Place::run_tabs, 0, 1, QT_TRANSLATE_NOOP("Words", "Metrics"),
     [](Session& session) -> QWidget* { return new MetricsView(session); },
     [](Session& session) { return csv_of(*session.run()->steps()); }});

}  // namespace
}  // namespace tessera::gui
