// SPDX-License-Identifier: GPL-3.0-or-later
// One rank's memory over the simulated step, with the classes of a moment beside it.
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/step/memory_moment_model.h"
#include "gui/step/memory_text.h"
#include "gui/step_views/memory_canvas.h"
#include "gui/views/table.h"
#include "gui/views/view.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr const char* kStepsAre = QT_TRANSLATE_NOOP(
    "Words",
    "Memory changes where a call begins or ends, and in training where a micro-batch's forward "
    "pass "
    "begins or its backward pass ends; in between it is drawn as it is counted, at the most that a "
    "micro-batch of the token limit needs. Where several changes share a pixel the fullest is "
    "drawn, shaded down to the emptiest.");

/// The rank that all views look at; where none does, the one that the planner's account is of: the
/// fullest.
int shownRank(Session& session) {
  return session.view().rank >= 0 ? session.view().rank : session.memory()->rank();
}

MemoryLimits limitsOf(Session& session) {
  return {session.memory()->limit(), session.memory()->device()};
}

class MemoryTimeView : public QWidget {
 public:
  explicit MemoryTimeView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    session_.timeline()->want();
  }

 private:
  QLayout* top();
  QWidget* below();
  void stepChanged();
  void viewChanged(const ViewState& view);
  void showRank();
  void showMoment();

  Session& session_;
  MemoryCanvas* canvas_;
  QSpinBox* rank_;
  QPushButton* fullest_;
  QLabel *peak_, *moment_;
  MemoryMomentModel* classes_;
};

MemoryTimeView::MemoryTimeView(Session& session)
    : session_(session),
      canvas_(new MemoryCanvas),
      rank_(new QSpinBox),
      fullest_(new QPushButton(Words::tr("F&ullest"))),
      peak_(new QLabel),
      moment_(new QLabel),
      classes_(new MemoryMomentModel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addLayout(top());
  auto* split = new QSplitter;
  split->setObjectName("memory_time");
  split->setChildrenCollapsible(false);
  split->addWidget(canvas_);
  split->addWidget(below());
  split->setSizes({900, 330});
  split->setStretchFactor(0, 1);
  layout->addWidget(split, 1);
  connect(canvas_, &TimeCanvas::momentChanged, this, [this] { showMoment(); });
  connect(canvas_, &TimeCanvas::entered, this, [this](double ns) {
    const auto phase = phase_at(canvas_->steps(), ns);
    session_.look({canvas_->steps().rank, phase ? phase : session_.view().phase});
  });
  connect(&session, &Session::viewChanged, this,
          [this](const ViewState& view) { viewChanged(view); });
  connect(session.timeline(), &PlanWatch::changed, this, [this] { stepChanged(); });
  stepChanged();
}

QLayout* MemoryTimeView::top() {
  auto* line = new QHBoxLayout;
  auto* name = new QLabel(Words::tr("Ran&k"));
  name->setBuddy(rank_);
  rank_->setAccessibleName(Words::tr("Rank whose memory is shown"));
  rank_->setKeyboardTracking(false);
  fullest_->setToolTip(Words::tr("The rank that holds most"));
  peak_->setWordWrap(true);
  peak_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  peak_->setAccessibleName(Words::tr("Where the rank holds most"));
  line->addWidget(name);
  line->addWidget(rank_);
  line->addWidget(fullest_);
  line->addSpacing(8);
  line->addWidget(peak_, 1);
  connect(rank_, &QSpinBox::valueChanged, this, [this](int rank) {
    session_.look({rank, session_.view().phase});
  });
  connect(fullest_, &QPushButton::clicked, this, [this] {
    session_.look({-1, session_.view().phase});
  });
  return line;
}

QWidget* MemoryTimeView::below() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  moment_->setWordWrap(true);
  moment_->setAccessibleName(Words::tr("The moment that is shown"));
  QTableView* table =
      makeTable(classes_, Words::tr("Classes of memory then"), MemoryMomentModel::BadRole);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(false);  // its width is what the texts need
  keepColumnsInSight(table);
  auto* help =
      new QLabel(Words::tr("W S, wheel: zoom · A D, drag: move · F: the phase · Home: all "
                           "· . , : next change · Enter: look at that phase everywhere"));
  keepForTheScreen(*help);
  help->setWordWrap(true);
  help->setToolTip(Words::tr(kStepsAre));
  auto* steps =
      new QLabel(Words::tr("Drawn in steps, as the simulator counts: by call and micro-batch."));
  steps->setWordWrap(true);
  steps->setToolTip(Words::tr(kStepsAre));
  layout->addWidget(moment_);
  layout->addWidget(table, 1);
  layout->addWidget(steps);
  layout->addWidget(help);
  return panel;
}

void MemoryTimeView::stepChanged() {
  if (session_.plan()) {
    const QSignalBlocker quiet(rank_);
    rank_->setRange(0, session_.plan()->world_size() - 1);
  }
  showRank();
  if (isVisible()) session_.timeline()->want();
}

void MemoryTimeView::viewChanged(const ViewState& view) {
  const bool other =
      shownRank(session_) != canvas_->steps().rank || limitsOf(session_) != canvas_->limits();
  if (other) showRank();
  canvas_->look(view.phase);
  showMoment();
}

void MemoryTimeView::showRank() {
  const PlanJob<TimelineIndex>& job = *session_.timeline();
  const int rank = shownRank(session_);
  canvas_->setMemory(job.facts(), rank, limitsOf(session_),
                     !job.facts() ? job.whyNone(Words::tr("Simulating the step"))
                     : rank >= 0  ? Words::tr("Rank %1 has no role.").arg(rank)
                                  : session_.memory()->problem());
  const QSignalBlocker quiet(rank_);
  if (rank >= 0) rank_->setValue(rank);
  rank_->setEnabled(session_.plan() != nullptr);
  showMoment();
}

void MemoryTimeView::showMoment() {
  const MemorySteps& steps = canvas_->steps();
  if (steps.empty()) {
    peak_->clear();
    moment_->clear();
    classes_->clear();
    return;
  }
  const auto phase = session_.view().phase;
  const QString then = phase && phase != steps.peak_phase ? phaseText(steps, *phase) : QString();
  peak_->setText(peakText(steps, canvas_->limits()) + (then.isEmpty() ? then : " " + then));
  const auto now = canvas_->moment();
  const double peak_ns = static_cast<double>(steps.samples[steps.peak].time_ns);
  moment_->setText("<b>" + momentText(steps, now.value_or(peak_ns)) + "</b>" +
                   (now ? "" : Words::tr(", its peak")));
  classes_->setMoment(steps, canvas_->limits(), canvas_->shown());
}

MemorySteps stepsOf(Session& session) {
  const auto& facts = session.timeline()->facts();
  const int rank = shownRank(session);
  return facts && rank >= 0 ? memory_steps_of(*facts, rank) : MemorySteps{};
}

const RegisteredView kMemoryTimeView(
    {"memory_over_time", Place::whole, 2, 1, QT_TRANSLATE_NOOP("Words", "Memory over time"),
     [](Session& session) -> QWidget* { return new MemoryTimeView(session); },
     [](Session& session) { return csv_of(stepsOf(session)); },
     [](Session& session) { return json_of(stepsOf(session), limitsOf(session)); }});

}  // namespace
}  // namespace tessera::gui
