#include "executor/batching/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cost_models/spec/enum_names.h"

namespace tessera {

namespace {

constexpr auto kDecays =
    enum_names<LrDecay>({{LrDecay::constant, "constant"}, {LrDecay::cosine, "cosine"}});

}  // namespace

std::string_view name_of(LrDecay decay) { return kDecays[decay]; }

std::int64_t warmup_steps(const LrSchedule& schedule) {
  if (schedule.warmup_steps > 0) return schedule.warmup_steps;
  return static_cast<std::int64_t>(schedule.warmup_ratio *
                                   static_cast<double>(schedule.total_steps));
}

double learning_rate(const LrSchedule& schedule, std::int64_t step) {
  const std::int64_t warmup = warmup_steps(schedule);
  if (step < warmup) return schedule.lr * static_cast<double>(step) / static_cast<double>(warmup);
  if (schedule.decay == LrDecay::constant) return schedule.lr;
  const double progress =
      static_cast<double>(step - warmup) /
      static_cast<double>(std::max<std::int64_t>(1, schedule.total_steps - warmup));
  const double wave = std::cos(std::numbers::pi * schedule.cycles * 2.0 * progress);
  const double ratio =
      (1.0 - schedule.min_lr_ratio) / 2.0 * wave + (1.0 + schedule.min_lr_ratio) / 2.0;
  return schedule.lr * std::max(schedule.min_lr_ratio, ratio);
}

}  // namespace tessera
