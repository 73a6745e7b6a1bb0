// SPDX-License-Identifier: GPL-3.0-or-later
// The load of the cluster's links over the simulated step.
#include <QHeaderView>
#include <QLabel>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/step_views/link_canvas.h"
#include "gui/timeline/link_model.h"
#include "gui/views/elided_label.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

class LinkView : public QWidget {
 public:
  explicit LinkView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    session_.timeline()->want();
  }

 private:
  QWidget* below();
  void stepChanged();
  void showMoment();
  /// By the user: the lane's first rank, and what loads it then, are looked at everywhere.
  void choose(int lane, std::optional<double> ns);

  Session& session_;
  LinkCanvas* canvas_;
  QLabel *fullest_, *counted_, *moment_;
  LinkModel* links_;
};

LinkView::LinkView(Session& session)
    : session_(session),
      canvas_(new LinkCanvas),
      fullest_(new QLabel),
      counted_(new QLabel),
      moment_(new ElidedLabel),
      links_(new LinkModel(this)) {
  fullest_->setWordWrap(true);
  fullest_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  fullest_->setAccessibleName(Words::tr("The fullest link"));
  counted_->setWordWrap(true);
  counted_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  counted_->setAccessibleName(Words::tr("What the loads count"));
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("links");
  split->setChildrenCollapsible(false);
  split->addWidget(canvas_);
  split->addWidget(below());
  split->setSizes({420, 220});
  split->setStretchFactor(0, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addWidget(fullest_);
  layout->addWidget(counted_);
  layout->addWidget(split, 1);
  connect(canvas_, &TimeCanvas::momentChanged, this, [this] { showMoment(); });
  connect(canvas_, &LinkCanvas::laneClicked, this, [this](int lane) { choose(lane, {}); });
  connect(canvas_, &TimeCanvas::entered, this,
          [this](double ns) { choose(canvas_->picture().lane, ns); });
  connect(&session, &Session::viewChanged, canvas_, &LinkCanvas::look);
  connect(session.timeline(), &PlanWatch::changed, this, [this] { stepChanged(); });
  stepChanged();
}

QWidget* LinkView::below() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  moment_->setAccessibleName(Words::tr("The load that is shown"));
  auto* order = new QSortFilterProxyModel(panel);
  order->setSourceModel(links_);
  order->setSortRole(LinkModel::SortRole);
  QTableView* table = makeTable(order, Words::tr("Links of the cluster"));
  table->setSortingEnabled(true);
  table->sortByColumn(-1, Qt::AscendingOrder);  // as the lanes stand: the fullest first
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  auto* help =
      new ElidedLabel(Words::tr("W S, wheel: zoom · A D, drag: move · F: the chosen phase · Home: "
                                "all · . , : next change · up, down: links · a click chooses the "
                                "link's first rank"));
  keepForTheScreen(*help);
  layout->addWidget(moment_);
  layout->addWidget(table, 1);
  layout->addWidget(help);
  const auto go = [this, order](const QModelIndex& index) {
    const int lane = order->mapToSource(index).row();
    canvas_->goTo(lane);
    choose(lane, {});
  };
  connect(table, &QTableView::activated, this, go);
  connect(table, &QTableView::clicked, this, go);
  return panel;
}

void LinkView::choose(int lane, std::optional<double> ns) {
  if (lane < 0 || lane >= static_cast<int>(canvas_->steps().lanes.size())) return;
  const auto at = static_cast<std::size_t>(lane);
  const LinkLane& of = canvas_->steps().lanes[at];
  ViewState view = session_.view();
  if (!carries(of, view.rank) && !of.first().ranks.empty()) view.rank = of.first().ranks.front();
  if (ns) {
    const std::vector<UseThen> uses = uses_at(canvas_->steps(), at, *ns);
    if (!uses.empty()) view.phase = uses.front().use->phase;
  }
  session_.look(view);
}

void LinkView::stepChanged() {
  const PlanJob<TimelineIndex>& job = *session_.timeline();
  links_->setLinks({});  // of another index
  canvas_->setIndex(job.facts(), job.facts() ? Words::tr("Nothing crosses a link in this step.")
                                             : job.whyNone(Words::tr("Simulating the step")));
  links_->setLinks(canvas_->steps());
  canvas_->look(session_.view());
  fullest_->setText(loadText(canvas_->steps()));
  counted_->setText(job.facts() ? countedText(canvas_->steps()) : QString());
  showMoment();
  if (isVisible()) session_.timeline()->want();
}

void LinkView::showMoment() {
  const auto now = canvas_->moment();
  const int lane = canvas_->picture().lane;
  links_->setMoment(now);
  QString text = Words::tr("Strips: the share of what a link carries, over the step");
  if (canvas_->steps().empty()) text.clear();
  if (now && lane >= 0) {
    text = describe(canvas_->steps(), static_cast<std::size_t>(lane), *now);
    text.replace("\n", QString::fromUtf8("  \u00b7  "));
  }
  moment_->setText(text);
}

LinkSteps linksOf(Session& session) {
  const auto& facts = session.timeline()->facts();
  return facts ? link_steps_of(*facts) : LinkSteps{};
}

const RegisteredView kLinkView({"link_load", Place::whole, 4, 1,
                                QT_TRANSLATE_NOOP("Words", "Load of links"),
                                [](Session& session) -> QWidget* { return new LinkView(session); },
                                [](Session& session) { return csv_of(linksOf(session)); },
                                [](Session& session) { return json_of(linksOf(session)); }});

}  // namespace
}  // namespace tessera::gui
