// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/memory_canvas.h"

#include <algorithm>
#include <utility>

#include "gui/document/words.h"
#include "gui/step/memory_text.h"

namespace tessera::gui {

MemoryCanvas::MemoryCanvas(QWidget* parent)
    : TimeCanvas(Words::tr("Memory over the simulated step"), MemoryPicture::kScale, parent) {}

void MemoryCanvas::setMemory(std::shared_ptr<const TimelineIndex> index, int rank,
                             const MemoryLimits& limits, const QString& why) {
  const bool other_step = index != index_;
  index_ = std::move(index);
  setWhy(why);
  picture_.limits = limits;
  picture_.steps = index_ && rank >= 0 ? memory_steps_of(*index_, rank) : MemorySteps{};
  if (other_step) {
    setEnd(index_ ? static_cast<double>(index_->end_ns) : 0);
  } else {
    moved();
  }
}

void MemoryCanvas::look(std::optional<Phase> phase) {
  if (phase == picture_.phase) return;
  picture_.phase = phase;
  update();
  const auto now = moment();
  if (!phase || picture_.steps.empty() || (now && phase_at(steps(), *now) == phase)) return;
  if (const auto fullest = fullest_in(steps(), *phase)) {
    keep(static_cast<double>(steps().samples[*fullest].time_ns));
  }
}

std::size_t MemoryCanvas::shown() const {
  const auto now = moment();
  return now ? sample_at(steps(), *now) : steps().peak;
}

void MemoryCanvas::draw(QPainter& painter, const TimePicture& at) {
  static_cast<TimePicture&>(picture_) = at;
  paint(painter, picture_);
}

// From one change of the memory to the next.
double MemoryCanvas::nextMoment(double ns, int step) const {
  if (steps().empty()) return ns;
  const auto last = static_cast<std::ptrdiff_t>(steps().samples.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(sample_at(steps(), ns)) + step;
  const auto next = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last));
  return static_cast<double>(steps().samples[next].time_ns);
}

std::optional<std::pair<double, double>> MemoryCanvas::chosenTime() const {
  for (const Span& span : steps().phases) {
    if (span.phase == picture_.phase) {
      return std::pair(static_cast<double>(span.start_ns), static_cast<double>(span.end_ns));
    }
  }
  return std::nullopt;
}

QString MemoryCanvas::says(double ns) const { return describe(steps(), ns); }

}  // namespace tessera::gui
