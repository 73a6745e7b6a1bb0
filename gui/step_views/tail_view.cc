// SPDX-License-Identifier: GPL-3.0-or-later
// The rollout's active sequences over the generation, and its tail.
#include <QHeaderView>
#include <QLabel>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/step/replica_model.h"
#include "gui/step_views/tail_canvas.h"
#include "gui/views/elided_label.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

class TailView : public QWidget {
 public:
  explicit TailView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    session_.timeline()->want();
  }

 private:
  QWidget* beside();
  void stepChanged();
  void showMoment();
  /// By the user: what the replica's ranks do is looked at everywhere.
  void choose(int replica);

  Session& session_;
  TailCanvas* canvas_;
  QLabel *tail_, *moment_;
  ReplicaModel* replicas_;
};

TailView::TailView(Session& session)
    : session_(session),
      canvas_(new TailCanvas),
      tail_(new QLabel),
      moment_(new QLabel),
      replicas_(new ReplicaModel(this)) {
  tail_->setWordWrap(true);
  tail_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  tail_->setAccessibleName(Words::tr("The rollout's tail"));
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("tail");
  split->setChildrenCollapsible(false);
  split->addWidget(canvas_);
  split->addWidget(beside());
  split->setSizes({420, 220});
  split->setStretchFactor(0, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addWidget(tail_);
  layout->addWidget(split, 1);
  connect(canvas_, &TimeCanvas::momentChanged, this, [this] { showMoment(); });
  connect(canvas_, &TailCanvas::replicaClicked, this, [this](int replica) { choose(replica); });
  connect(canvas_, &TimeCanvas::entered, this, [this] {
    session_.look({session_.view().rank, Phase::gen});
  });
  connect(&session, &Session::viewChanged, this,
          [this](const ViewState& view) { canvas_->look(view.rank); });
  connect(session.timeline(), &PlanWatch::changed, this, [this] { stepChanged(); });
  stepChanged();
}

QWidget* TailView::beside() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  moment_->setAccessibleName(Words::tr("The moment of the generation that is shown"));
  auto* order = new QSortFilterProxyModel(panel);
  order->setSourceModel(replicas_);
  order->setSortRole(ReplicaModel::SortRole);
  QTableView* table = makeTable(order, Words::tr("Replicas of the rollout"));
  table->setSortingEnabled(true);
  table->sortByColumn(ReplicaModel::End, Qt::DescendingOrder);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  auto* help =
      new ElidedLabel(Words::tr("W S, wheel: zoom · A D, drag: move · F: the tail · Home: all "
                                "· . , : next change · a click chooses the replica's first rank"));
  keepForTheScreen(*help);
  layout->addWidget(moment_);
  layout->addWidget(table, 1);
  layout->addWidget(help);
  connect(table, &QTableView::activated, this,
          [this, order](const QModelIndex& index) { choose(order->mapToSource(index).row()); });
  connect(table, &QTableView::clicked, this,
          [this, order](const QModelIndex& index) { choose(order->mapToSource(index).row()); });
  return panel;
}

void TailView::choose(int replica) {
  const auto at = static_cast<std::size_t>(replica);
  session_.look({canvas_->steps().replicas[at].rollout->ranks.front(), Phase::gen});
}

void TailView::stepChanged() {
  const PlanJob<TimelineIndex>& job = *session_.timeline();
  replicas_->setRollout({});  // of another index
  canvas_->setRollout(job.facts(), job.facts() ? Words::tr("This step generates nothing.")
                                               : job.whyNone(Words::tr("Simulating the step")));
  replicas_->setRollout(canvas_->steps());
  canvas_->look(session_.view().rank);
  tail_->setText(tailText(canvas_->steps()));
  showMoment();
  if (isVisible()) session_.timeline()->want();
}

void TailView::showMoment() {
  const auto now = canvas_->moment();
  const RolloutSteps& steps = canvas_->steps();
  replicas_->setMoment(now);
  moment_->setText(
      now             ? describe(steps, -1, *now)
      : steps.empty() ? QString()
                      : Words::tr("Lanes: sequences that are active on each replica, of at most %1")
                            .arg(steps.most_active));
}

RolloutSteps rolloutOf(Session& session) {
  const auto& facts = session.timeline()->facts();
  return facts ? rollout_steps_of(*facts) : RolloutSteps{};
}

const RegisteredView kTailView({"rollout_tail", Place::whole, 3, 1,
                                QT_TRANSLATE_NOOP("Words", "Rollout's tail"),
                                [](Session& session) -> QWidget* { return new TailView(session); },
                                [](Session& session) { return csv_of(rolloutOf(session)); },
                                [](Session& session) { return json_of(rolloutOf(session)); }});

}  // namespace
}  // namespace tessera::gui
