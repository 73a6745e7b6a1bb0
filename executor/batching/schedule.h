// The learning rate as a function of finished training steps.
//
// Warm-up and cosine as transformers' get_*_schedule_with_warmup computes them, with verl's
// min_lr_ratio (verl/utils/torch_functional.py). Pure functions; the rate of step 0 is zero when
// there is a warm-up, as there.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class LrDecay { constant, cosine };
std::string_view name_of(LrDecay decay);

struct LrSchedule {
  double lr = 1e-6;
  LrDecay decay = LrDecay::constant;
  std::int64_t warmup_steps = -1;  // <= 0: from the ratio
  double warmup_ratio = 0.0;       // of total_steps, rounded down
  std::int64_t total_steps = 0;    // needed by a ratio and by cosine
  double min_lr_ratio = 0.0;       // cosine ends at this part of lr
  double cycles = 0.5;             // half a cosine wave
};

std::int64_t warmup_steps(const LrSchedule& schedule);

/// The rate for the update after `step` finished ones.
double learning_rate(const LrSchedule& schedule, std::int64_t step);

}  // namespace tessera
