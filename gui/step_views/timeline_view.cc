// SPDX-License-Identifier: GPL-3.0-or-later
// The simulated step as a timeline, or a trace that was opened, with a search, and what an area
// adds up to.
#include <QApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTimer>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/step_views/timeline_area.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/threads/newest.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/span_totals_model.h"
#include "gui/trace/trace_file.h"
#include "gui/views/elided_label.h"
#include "gui/views/table.h"
#include "gui/views/view.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr int kRestMs = 60;                     // the mouse may drag on before totals are summed
constexpr std::size_t kSummedAtOnce = 200'000;  // spans; of more the window does not wait for sums

/// Asks for the timeline once it is in sight: plans pass faster than they are simulated.
class TimelineView : public QWidget {
 public:
  explicit TimelineView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    session_.timeline()->want();
  }
  /// The picture's keys work where the pointer is, unless text is being typed.
  void enterEvent(QEnterEvent* event) override {
    QWidget::enterEvent(event);
    const QWidget* const typed = QApplication::focusWidget();
    if (typed == nullptr || !typed->testAttribute(Qt::WA_InputMethodEnabled)) canvas_->setFocus();
  }

 private:
  /// The trace that is open, else the simulated step; nullptr = neither.
  const std::shared_ptr<const TimelineIndex>& shown() const {
    const auto& trace = session_.trace()->facts();
    return trace ? trace : session_.timeline()->facts();
  }
  QLayout* top();
  QWidget* below();
  void timelineChanged();
  void showTotals();
  void showSums(AreaSums sums, const std::optional<TimelineArea>& area);
  void showTrace();
  void showSpan();
  void showMatches();

  Session& session_;
  TimelineCanvas* canvas_;
  QLineEdit* search_;
  QLabel *found_, *says_, *area_;
  ElidedLabel* beside_;  // the prediction, or what the trace has
  QPushButton* close_;   // the trace
  SpanTotalsModel* totals_;
  std::shared_ptr<const TimelineIndex> shown_;
  QTimer rest_;
  Newest<AreaSums> summing_;  // last: its work ends before anything else goes
};

TimelineView::TimelineView(Session& session)
    : session_(session),
      canvas_(new TimelineCanvas),
      search_(new QLineEdit),
      found_(new QLabel),
      says_(new QLabel),
      area_(new QLabel),
      beside_(new ElidedLabel),
      close_(new QPushButton(Words::tr("Cl&ose the trace"))),
      totals_(new SpanTotalsModel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 0);
  layout->addLayout(top());
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("timeline");
  split->setChildrenCollapsible(false);
  split->addWidget(canvas_);
  split->addWidget(below());
  split->setSizes({560, 190});
  split->setStretchFactor(0, 1);
  layout->addWidget(split, 1);
  rest_.setSingleShot(true);
  rest_.setInterval(kRestMs);
  connect(&rest_, &QTimer::timeout, this, [this] { showTotals(); });
  connect(canvas_, &TimelineCanvas::areaChanged, this, [this] {
    rest_.start();
    showMatches();
  });
  connect(canvas_, &TimelineCanvas::chosen, this, [this](const ViewState& view) {
    if (!session_.trace()->facts()) session_.look(view);
    showSpan();
  });
  connect(&session, &Session::viewChanged, this, [this](const ViewState& view) {
    if (!session_.trace()->facts()) canvas_->look(view);
  });
  connect(session.timeline(), &PlanWatch::changed, this, [this] {
    if (!session_.trace()->facts()) timelineChanged();
  });
  connect(session.trace(), &OpenedTrace::changed, this, [this] { timelineChanged(); });
  connect(session.trace(), &OpenedTrace::progressed, this, [this] { showTrace(); });
  connect(close_, &QPushButton::clicked, this, [this] {
    OpenedTrace& trace = *session_.trace();
    trace.isBusy() ? trace.cancel() : trace.close();
  });
  timelineChanged();
}

QLayout* TimelineView::top() {
  auto* line = new QHBoxLayout;
  search_->setPlaceholderText(Words::tr("Search spans by name, as \"decode\" or \"gather\""));
  search_->setAccessibleName(Words::tr("Search of spans"));
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(320);
  auto* all = new QPushButton(Words::tr("Show &all"));
  all->setToolTip(Words::tr("Home; F shows the area or the span that is chosen"));
  auto* help =
      new ElidedLabel(Words::tr("W S, wheel: zoom · A D: move · F: fit · drag: "
                                "sum an area · N: next found "
                                "· underlined: critical path "
                                "· bar on top: communicates"));
  keepForTheScreen(*help);
  help->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  line->addWidget(search_);
  line->addWidget(found_);
  line->addWidget(help, 1);
  line->addWidget(close_);
  line->addWidget(all);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& part) {
    canvas_->setSearch(part);
    showMatches();
  });
  connect(search_, &QLineEdit::returnPressed, this, [this] { canvas_->goToMatch(1); });
  connect(all, &QPushButton::clicked, canvas_, [this] {
    canvas_->fitAll();
    canvas_->setFocus();
  });
  auto* find = new QShortcut(QKeySequence("Ctrl+F"), this);
  find->setContext(Qt::WidgetWithChildrenShortcut);
  connect(find, &QShortcut::activated, search_,
          [this] { search_->setFocus(Qt::ShortcutFocusReason); });
  return line;
}

QWidget* TimelineView::below() {
  auto* panel = new QWidget;
  auto* layout = new QHBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  says_->setWordWrap(true);
  says_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  says_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  says_->setMinimumWidth(240);
  says_->setAccessibleName(Words::tr("The span that is chosen"));
  auto* order = new QSortFilterProxyModel(panel);
  order->setSourceModel(totals_);
  order->setSortRole(SpanTotalsModel::SortRole);
  QTableView* table = makeTable(order, Words::tr("Totals of the area by name"));
  table->setSortingEnabled(true);
  table->sortByColumn(-1, Qt::AscendingOrder);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(false);
  auto* sums = new QVBoxLayout;
  beside_->setAccessibleName(Words::tr("The simulated step beside the predicted one"));
  sums->addWidget(beside_);
  sums->addWidget(area_);
  sums->addWidget(table, 1);
  layout->addWidget(says_, 1);
  layout->addLayout(sums, 3);
  connect(table, &QTableView::clicked, this, [this](const QModelIndex& index) {
    const QVariant phase = index.data(SpanTotalsModel::PhaseRole);
    if (phase.isValid()) session_.look({session_.view().rank, static_cast<Phase>(phase.toInt())});
  });
  return panel;
}

void TimelineView::timelineChanged() {
  const PlanJob<TimelineIndex>& job = *session_.timeline();
  const OpenedTrace& trace = *session_.trace();
  const bool traced = trace.facts() != nullptr;
  // While another trace is read the one that is shown stays as it is.
  if (shown() != shown_ || !shown_) {
    shown_ = shown();
    const QString why = trace.isBusy() ? Words::tr("Reading the trace")
                                       : job.whyNone(Words::tr("Simulating the step"));
    canvas_->setTimeline(shown_, why);
    if (!search_->text().isEmpty()) canvas_->setSearch(search_->text());
    showMatches();
    showSpan();
    showTotals();
  }
  showTrace();
  if (isVisible() && !traced) session_.timeline()->want();
}

void TimelineView::showTrace() {
  const OpenedTrace& trace = *session_.trace();
  const auto& step = session_.timeline()->facts();
  const bool traced = trace.facts() != nullptr;
  close_->setVisible(traced || trace.isBusy());
  close_->setText(trace.isBusy() ? Words::tr("Cancel rea&ding") : Words::tr("Cl&ose the trace"));
  beside_->setText(trace.isBusy() ? trace.progress()
                   : traced       ? trace.describe()
                   : step && session_.plan()
                       ? besidePredictedText(step->simulation, *session_.plan())
                       : QString());
}

void TimelineView::showMatches() {
  found_->setText(
      search_->text().isEmpty()
          ? QString()
          : Words::tr("%1 found").arg(countText(static_cast<double>(canvas_->matches()))));
}

void TimelineView::showSpan() {
  const auto& picture = canvas_->picture();
  says_->setText(picture.span  ? canvas_->describe(*picture.span)
                 : picture.gap ? canvas_->describe(*picture.gap)
                               : Words::tr("Click a span to see what it is, or a gap to see what "
                                           "it waits for."));
}

void TimelineView::showTotals() {
  const std::optional<TimelineArea> area = canvas_->picture().area;
  if (!shown_) {
    summing_.cancel();
    return showSums({}, area);
  }
  const SummedArea summed = summed_area(canvas_->picture());
  if (summed.spans() <= kSummedAtOnce) {
    summing_.cancel();
    return showSums(sums_of(*shown_, summed), area);
  }
  area_->setText(Words::tr("Summing"));
  summing_.start([shown = shown_, summed] { return sums_of(*shown, summed); },
                 [this, area](AreaSums sums) { showSums(std::move(sums), area); });
}

void TimelineView::showSums(AreaSums sums, const std::optional<TimelineArea>& area) {
  const bool phases = !shown_ || !shown_->trace || shown_->trace->phases;
  totals_->setTotals(std::move(sums.totals), sums.idle, sums.area_ns, phases);
  if (!shown_) {
    area_->clear();
  } else if (area) {
    area_->setText(Words::tr("<b>%1 to %2</b>, %3 lines")
                       .arg(secondsText(static_cast<double>(area->from_ns) * 1e-9),
                            secondsText(static_cast<double>(area->to_ns) * 1e-9))
                       .arg(area->last_row - area->first_row + 1));
  } else if (shown_->trace) {
    area_->setText(Words::tr("<b>The whole trace</b>; spans within others count in both"));
  } else {
    area_->setText(
        Words::tr("<b>The whole step</b> of all ranks; ranks that do the same are counted once "
                  "while they are folded"));
  }
}

const RegisteredView kTimelineView(
    {"timeline", Place::whole, 0, 1, QT_TRANSLATE_NOOP("Words", "Timeline"),
     [](Session& session) -> QWidget* { return new TimelineView(session); }, nullptr, nullptr,
     [](Session& session) -> LongText {
       if (const auto& trace = session.trace()->facts()) {
         return [trace](const TakePart& take) { give_trace_csv(*trace, take); };
       }
       const auto& facts = session.timeline()->facts();
       if (!facts) return {};
       return [facts](const TakePart& take) { give_csv(*facts, take); };
     },
     [](Session& session) -> LongText {
       const auto& facts = session.timeline()->facts();
       if (!facts || session.trace()->facts()) return {};  // a trace is its own file
       return [facts](const TakePart& take) { take(trace_of(*facts), 1); };
     }});

}  // namespace
}  // namespace tessera::gui
