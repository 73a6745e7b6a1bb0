// The prediction of one sweep row, under the planner's cost models.
//
// What the row leaves open is chosen as the planner chooses: the fastest completion that fits, or
// the leanest one where none fits. Pure; times in seconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cost_models/spec/units.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/solution.h"
#include "planner/sweep/sweep_inputs.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

struct SweepResult {
  /// Absent where the kind has no such part, all absent where the layout is impossible or refused.
  /// A layout that only lacks memory is timed all the same.
  std::optional<Seconds> step_s, gen_s, reshard_s, log_prob_s, update_s;
  std::optional<double> tokens_per_s_per_gpu, mfu, peak_gib;
  std::optional<double> fits;  // the probability that the memory suffices
  bool feasible = false;
  std::int64_t gpus = 0;  // that the layout takes
  /// The part that is impossible or too much (rank's phase, class, bytes); else the choices made
  /// for empty cells and the assumptions.
  std::string why;
};

/// The best plan that agrees with an iteration's row, by evaluators of the row's requests, or
/// nullopt (planner/sweep/search has one). Without a function the fastest completion is taken.
using RowSearch = std::function<std::optional<Solution>(
    CostEvaluator& costs, CostEvaluator& generating, const SweepRow& row)>;

/// Why the row cannot run at all, before what `why` said; no time of it is then a prediction.
void refuse(SweepResult& result, const std::string& why);

/// Remembers what rows have in common; one thread.
class SweepPricer {
 public:
  /// `inputs` must outlive it.
  SweepPricer(const SweepInputs& inputs, RowSearch search);
  ~SweepPricer();
  /// On a cluster with several GPU types: on the types with room for it on which it fits and is
  /// quickest, all of its pools alike. An iteration of engine `any`: as the engine that answers
  /// best, as `plan --engine any` does.
  SweepResult price(const SweepRow& row);

 private:
  SweepResult price_as_is(const SweepRow& row);
  SweepResult price_on(const SweepRow& row, int view);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
