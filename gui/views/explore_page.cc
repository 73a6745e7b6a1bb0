// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/explore_page.h"

#include <QFontDatabase>
#include <QHeaderView>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/models/colours.h"
#include "gui/models/text.h"
#include "planner/explain/report.h"

namespace tessera::gui {
namespace {

constexpr double kGib = 1LL << 30;

QSplitter* splitter(Qt::Orientation orientation, std::initializer_list<QWidget*> widgets) {
  auto* split = new QSplitter(orientation);
  split->setChildrenCollapsible(false);
  for (QWidget* widget : widgets) split->addWidget(widget);
  return split;
}

QWidget* titled(const QString& title, QWidget* content) {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(new QLabel("<b>" + title + "</b>"));
  layout->addWidget(content, 1);
  return panel;
}

}  // namespace

ExplorePage::ExplorePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      form_(new RequestForm),
      table_(new QTableView),
      message_(new QLabel),
      mesh_(new MeshView(session)),
      memory_(new Chart("")),
      phases_(new Chart("Predicted iteration")),
      stacking_(new QComboBox),
      certificate_(new QPlainTextEdit) {
  certificate_->setReadOnly(true);
  certificate_->setLineWrapMode(QPlainTextEdit::NoWrap);
  certificate_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  certificate_->setAccessibleName("Plan and certificate");
  message_->setWordWrap(true);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  message_->setAccessibleName("Result of the search");

  auto* right = splitter(Qt::Vertical, {memoryPanel(), phases_});
  auto* left = splitter(Qt::Vertical, {mesh_, titled("Plan and certificate", certificate_)});
  left->setSizes({330, 260});
  right->setSizes({340, 250});
  auto* details = splitter(Qt::Horizontal, {left, right});
  details->setSizes({600, 600});
  details_ = details;

  auto* top = new QWidget;
  auto* top_layout = new QVBoxLayout(top);
  top_layout->setContentsMargins(0, 0, 0, 0);
  top_layout->addWidget(message_);
  top_layout->addWidget(planTable(), 1);
  auto* main = splitter(Qt::Vertical, {top, details_});
  main->setSizes({170, 680});
  main->setStretchFactor(1, 1);

  auto* scroll = new QScrollArea;
  scroll->setWidget(form_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* whole = splitter(Qt::Horizontal, {scroll, main});
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setMinimumWidth(form_->minimumSizeHint().width() + 24);
  whole->setSizes({330, 1170});
  whole->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(whole);
  mesh_->setObjectName("mesh");
  memory_->setObjectName("memory");
  phases_->setObjectName("phases");
  table_->setObjectName("plans");
  certificate_->setObjectName("certificate");
  connectSession();
}

QWidget* ExplorePage::planTable() {
  table_->setModel(session_.plans());
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->setShowGrid(false);
  table_->setAccessibleName("Ranked plans");
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->verticalHeader()->setDefaultSectionSize(24);
  table_->setMinimumHeight(90);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& current) {
            if (current.isValid()) session_.selectRow(current.row());
          });
  return table_;
}

QWidget* ExplorePage::memoryPanel() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* top = new QHBoxLayout;
  top->addWidget(new QLabel("<b>Memory by phase</b>&nbsp;&nbsp;stacked by"));
  stacking_->addItems({"class", "role"});
  stacking_->setAccessibleName("What the memory bars are stacked by");
  top->addWidget(stacking_);
  top->addStretch(1);
  layout->addLayout(top);
  layout->addWidget(memory_, 1);
  connect(stacking_, &QComboBox::currentIndexChanged, this, [this](int index) {
    session_.memory()->setStacking(index == 0 ? MemoryModel::Stacking::classes
                                              : MemoryModel::Stacking::roles);
    showMemory();
  });
  return panel;
}

void ExplorePage::connectSession() {
  connect(form_, &RequestForm::queryChanged, &session_, &Session::ask);
  connect(&session_, &Session::busyChanged, this, [this](bool busy) {
    if (busy) say("Planning...", false);
  });
  connect(&session_, &Session::planSelected, this, &ExplorePage::showPlan);
  connect(&session_, &Session::planned, this, [this](double seconds) {
    const Certificate& found = session_.plans()->row(0).plan->certificate;
    say(QString(
            "Proven optimum in %1: %2 candidates priced, %3 branches cut, gap %4 %, margin %5 %")
            .arg(secondsText(seconds), countText(static_cast<double>(found.evaluated)),
                 countText(static_cast<double>(found.pruned)))
            .arg(100 * found.gap, 0, 'f', 2)
            .arg(100 * found.margin, 0, 'f', 1),
        false);
  });
  connect(&session_, &Session::infeasible, this, [this](const QString& text) {
    say(text, true);
    details_->setEnabled(false);
  });
  connect(&session_, &Session::problemsFound, this,
          [this](const QString& text) { say(text, true); });
  connect(&session_, &Session::rankChosen, this, &ExplorePage::showMemory);
}

void ExplorePage::say(const QString& text, bool bad) {
  message_->setText(text.trimmed());
  message_->setStyleSheet(bad ? "background:#fde8e4; color:#7a1d0c; padding:6px;" : "padding:2px;");
}

void ExplorePage::showPlan(const Plan& plan) {
  details_->setEnabled(true);
  const QSignalBlocker quiet(table_->selectionModel());
  table_->selectRow(session_.selectedRow());
  for (int column = 0; column < PlanTableModel::Layouts; ++column) {
    table_->resizeColumnToContents(column);
  }
  certificate_->setPlainText(QString::fromStdString(describe(plan)));
  showPhases();
}

void ExplorePage::showMemory() {
  const MemoryModel& memory = *session_.memory();
  std::vector<ChartStack> stacks;
  for (const MemoryModel::Series& series : memory.series()) {
    ChartStack stack{series.name, series.colour, {}};
    for (const std::int64_t bytes : series.bytes) {
      stack.values.push_back(static_cast<double>(bytes) / kGib);
    }
    stacks.push_back(std::move(stack));
  }
  const bool fullest = memory.rank() == memory.fullestRank();
  memory_->showBars(QString("GiB on rank %1%2").arg(memory.rank()).arg(fullest ? " (fullest)" : ""),
                    memory.phases(), stacks, static_cast<double>(memory.limit()) / kGib,
                    "device " + bytesText(memory.limit()));
}

void ExplorePage::showPhases() {
  const PhaseModel& phases = *session_.phases();
  QStringList lanes;
  std::vector<ChartSpan> spans;
  for (const PhaseModel::Row& row : phases.rows()) {
    const std::string_view name = name_of(row.phase);
    const QString phase = QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    spans.push_back({row.block, row.start_s, row.seconds, phase + "\n" + secondsText(row.seconds),
                     colourOf(row.phase)});
  }
  phases_->setMinimumHeight(60 + 50 * static_cast<int>(phases.blocks().size()));
  for (const QString& block : phases.blocks()) lanes << QString(block).replace(" + ", "\n");
  phases_->showSpans("seconds", lanes, spans, phases.step());
}

}  // namespace tessera::gui
