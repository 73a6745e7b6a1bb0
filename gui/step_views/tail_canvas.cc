// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/tail_canvas.h"

#include <QMouseEvent>
#include <algorithm>
#include <utility>

#include "gui/document/words.h"

namespace tessera::gui {

TailCanvas::TailCanvas(QWidget* parent)
    : TimeCanvas(Words::tr("Active sequences of the rollout's replicas"), TailPicture::kNames,
                 parent) {}

void TailCanvas::setRollout(std::shared_ptr<const TimelineIndex> index, const QString& why) {
  setWhy(why);
  if (index == index_) return;
  index_ = std::move(index);
  picture_.steps = index_ ? rollout_steps_of(*index_) : RolloutSteps{};
  changes_ = changes_of(steps());
  setEnd(static_cast<double>(steps().length_ns()));
}

void TailCanvas::look(int rank) {
  const int replica = replica_of_rank(steps(), rank);
  if (replica == picture_.replica) return;
  picture_.replica = replica;
  moved();
}

void TailCanvas::draw(QPainter& painter, const TimePicture& at) {
  static_cast<TimePicture&>(picture_) = at;
  paint(painter, picture_);
}

// From one change of any replica to the next.
double TailCanvas::nextMoment(double ns, int step) const {
  if (changes_.empty()) return ns;
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), ns,
      [](double at, std::int64_t change) { return at < static_cast<double>(change); });
  const auto last = std::ssize(changes_) - 1;
  const auto at = after - changes_.begin() + (step > 0 ? 0 : -2);
  return static_cast<double>(
      changes_[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))]);
}

std::optional<std::pair<double, double>> TailCanvas::chosenTime() const {
  if (steps().empty()) return std::nullopt;
  return std::pair(static_cast<double>(steps().since(steps().tail.most_ns)),
                   static_cast<double>(steps().length_ns()));
}

QString TailCanvas::says(double ns) const { return describe(steps(), picture_.replica, ns); }

void TailCanvas::mousePressEvent(QMouseEvent* event) {
  TimeCanvas::mousePressEvent(event);
  const int replica = picture_.replicaAt(event->pos().y());
  if (replica >= 0) emit replicaClicked(replica);
}

}  // namespace tessera::gui
