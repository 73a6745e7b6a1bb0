// The prediction of one sweep row, under the planner's cost models.
//
// What the row leaves open is chosen as the planner chooses: the fastest completion that fits, or
// the leanest one where none fits. Pure; times in seconds.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "planner/sweep/sweep_inputs.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

struct SweepResult {
  /// Absent where the kind has no such part, all absent where the layout is impossible. A layout
  /// that does not fit is timed all the same.
  std::optional<double> step_s, gen_s, reshard_s, log_prob_s, update_s, tokens_per_s_per_gpu, mfu,
      peak_gib;
  bool feasible = false;
  /// What is impossible or too much (rank's phase, class, bytes); else the choices made for empty
  /// cells and the assumptions.
  std::string why;
};

/// Remembers what rows have in common; one thread.
class SweepPricer {
 public:
  explicit SweepPricer(const SweepInputs& inputs);  // which must outlive it
  ~SweepPricer();
  SweepResult price(const SweepRow& row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
