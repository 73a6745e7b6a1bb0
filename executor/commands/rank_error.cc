#include "executor/commands/rank_error.h"

#include <string>

#include "executor/comm/communicator.h"
#include "executor/loop/reward_scores.h"
#include "executor/loop/share.h"
#include "executor/loop/worker.h"
#include "executor/run_state/finite_weights.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

/// Of the rollout, whichever rank holds it.
std::string bad_tensor(const RoleWorker& rollout, Communicator& host) {
  std::string mine;
  for (const Weights* weights : {rollout.weights.get(), rollout.adapters.get()}) {
    if (weights != nullptr && mine.empty()) mine = tensor_not_finite(*weights);
  }
  for (std::string& name : share_texts(host, mine)) {
    if (!name.empty()) return std::move(name);
  }
  return {};
}

bool was_trained(const Worker& worker, Communicator& host) {
  const RoleWorker* const actor = worker.find(Role::actor);
  const bool trains = actor != nullptr && actor->trainer != nullptr && actor->trainer->trains();
  return any_rank(host, trains && actor->trainer->optimizer().state().steps > 0);
}

}  // namespace

ExitCode code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return own->code();
  const bool peer = dynamic_cast<const PeerLost*>(&error) != nullptr;
  return peer ? ExitCode::peer_lost : ExitCode::internal;
}

bool is_of_all(const std::exception& error) {
  return code_of(error) == ExitCode::check_failed ||
         dynamic_cast<const ServerLost*>(&error) != nullptr ||
         dynamic_cast<const RewardsFailed*>(&error) != nullptr;
}

Error broken_weights(const Worker& worker, const Plan& plan, Phase phase, std::int64_t step) {
  const RoleWorker& rollout = *worker.find(Role::rollout);
  Communicator& host = *worker.context.host;
  const std::string tensor = bad_tensor(rollout, host);
  const bool trained = was_trained(worker, host);
  if (!tensor.empty() && !trained) {
    return {ExitCode::bad_input,
            {Problem{.file = plan.models.at(rollout.plan->model).path,
                     .place = tensor,
                     .found = "weights that are NaN or infinite",
                     .expected = "numbers"}}};
  }
  const std::string weights =
      tensor.empty() ? "logits are NaN or infinite, though the weights are numbers"
                     : "weights are NaN or infinite, those of " + tensor + " among them";
  const std::string then =
      trained
          ? ": the run has diverged; go on from a checkpoint before that, with a lower learning "
            "rate (trainer.resume_from_path)"
          : "";
  return {ExitCode::check_failed, "phase " + std::string(name_of(phase)) + " of step " +
                                      std::to_string(step) + ": no token can be drawn: " + weights +
                                      then};
}

}  // namespace tessera
