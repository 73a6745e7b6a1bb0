// The calls of an iteration on one rank: what the plan's schedule names, one function each.
//
// Every function is called on every rank of the world; a rank without the role does nothing. After
// a function that yields per-token results only the role's members hold them, until they are
// shared.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/loop/worker.h"
#include "executor/rl/experience.h"
#include "executor/rl/rows.h"
#include "executor/rollout/order_cost.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

/// The learning rate of all updates of a training step, as verl's scheduler has it, times what
/// rules have lowered rates to.
double rate_of_step(const OptimConfig& optim, const RunConfig& config, const Worker& worker,
                    std::int64_t step);
/// Its name among the step's numbers.
inline std::string rate_name(Role role) { return std::string(name_of(role)) + "/lr"; }

/// Whether this rank speaks for a replica of the rollout: the first of those that generate alike.
bool speaks_for_replica(const RoleWorker& rollout);

/// This rank's share of the rollout as (prompt, sample) sequences; empty unless the rank speaks for
/// its replica. The generators of torch are put back afterwards as they were. `engine` is the
/// rank's, nullptr where it does not generate.
struct GeneratedShare {
  std::vector<Sequence> sequences;
  Metrics metrics;
  std::optional<OrderCost> order_cost;  // of Rollout
};
GeneratedShare generate_share(Worker& worker, RolloutEngine* engine, std::int64_t step,
                              std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                              const AfterPass& after_pass = {});

/// Fill old_log_prob (and sum_pi_squared, where the estimator reads it), ref_log_prob, values or
/// (reward model) score of all sequences. The old policy's gives verl's actor/entropy, its entropy
/// aggregated as the loss is, on the role's leader.
Metrics compute_old_log_prob(Worker& worker, const RunConfig& config, Experience& experience);
void compute_ref_log_prob(Worker& worker, const RunConfig& config, Experience& experience);
void compute_values(Worker& worker, Experience& experience);
void compute_reward_scores(Worker& worker, Experience& experience);

/// What old_log_prob fills.
SequenceFields old_log_prob_fields(const AlgorithmConfig& algorithm);

/// Rewards, the correction where rollout and old policy differ, and advantages, of sequences that
/// have everything else.
Metrics shape_advantages(Worker& worker, const AlgorithmConfig& algorithm, Experience& experience);

/// Tells which of vLLM's servers were started in others' places, once.
void note_servers(Worker& worker, const std::function<void(const std::string&)>& note);

/// One pass per epoch over the mini-batches, consecutive sequences each. Metrics (means over the
/// updates) on the role's leader only; the learning rate is the training step's. With `overlap` the
/// reshard begins with the last update, on every rank, and move_weights ends it.
Metrics update_actor(Worker& worker, const RunConfig& config, std::int64_t epochs,
                     const Experience& experience, bool overlap = false);
Metrics update_critic(Worker& worker, const RunConfig& config, std::int64_t epochs,
                      const Experience& experience);

/// Whether only digests can tell that a reshard was right which is to be verified: workers of vLLM
/// that were sent their weights have nothing else to compare them with.
inline bool digests_alone(const RunConfig& config) {
  return config.rollout.engine == GenerationEngine::vllm && config.reshard.verify &&
         config.rollout.vllm.transport == WeightTransport::messages;
}

/// Digests of what the actor trains against what the rollout holds, right after move_weights, whose
/// report says the wire; and what is trained against its master weights. Throws Error
/// (check_failed), alike on every rank, that names the tensors, ranks and bytes that differ.
/// Collective over the world.
CertificateReport verify_weights(Worker& worker, std::optional<DType> wire);

/// A reshard's figures under their names in the step's metrics.
Metrics metrics_of(const ReshardReport& report);

}  // namespace tessera
