#include "planner/pricing/role/full_gather.h"

#include <algorithm>

#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/request/candidate.h"

namespace tessera {

bool gathers_whole(std::string_view engine) {
  return engine_named(engine).weights.gather.has_value();
}

Candidate whole_copies(Candidate rollout) {
  rollout.tp = rollout.pp = rollout.ep = rollout.etp = 1;
  rollout.dp = rollout.gpus;
  return rollout;
}

int gathering_ranks(const Candidate& actor) {
  const int dense = actor.tp * actor.pp * actor.dp_shard * (actor.zero == 3 ? actor.cp : 1);
  return std::min(actor.gpus, std::max(dense, actor.pp * actor.ep * actor.etp));
}

namespace {

std::int64_t largest_tensor_bytes(std::string_view engine, const ModelSpec& actor,
                                  const RoleDTypes& dtypes) {
  const auto& gather = engine_named(engine).weights.gather;
  const DType type = gather && gather->master_weights ? dtypes.master : dtypes.param;
  return std::max(actor.vocab, actor.ffn) * actor.hidden * size_of(type);
}

}  // namespace

std::int64_t largest_tensor_bytes(const Plan& plan) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (actor == nullptr) return 0;
  return largest_tensor_bytes(plan.engine, plan.models.at(actor->model).spec, actor->dtypes);
}

std::int64_t gather_bucket_bytes(std::string_view engine, const ModelSpec& actor,
                                 const RoleDTypes& dtypes) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  const std::int64_t usual =
      engine_named(engine).weights.gather.value_or(WholeGather{}).bucket_mebibytes;
  const std::int64_t largest =
      (largest_tensor_bytes(engine, actor, dtypes) + kMebibyte - 1) / kMebibyte;
  return std::max(usual, largest) * kMebibyte;
}

std::int64_t gather_bucket_bytes(const Plan& plan) {
  const RolePlan& actor = *plan.find(Role::actor);
  return gather_bucket_bytes(plan.engine, plan.models.at(actor.model).spec, actor.dtypes);
}

void set_gathered(const Plan& plan, std::int64_t received, std::int64_t weights,
                  PlannedReshard& pair) {
  pair.mode = ReshardMode::full;
  pair.digest.clear();
  pair.bytes_received = received;
  pair.lower_bound_bytes = std::min(pair.lower_bound_bytes, received);
  pair.total_received_bytes =
      received * static_cast<std::int64_t>(plan.find(pair.to)->ranks.size());
  if (pair.bucket_bytes == 0) pair.bucket_bytes = gather_bucket_bytes(plan);
  pair.peak_bytes = weights + pair.bucket_bytes;
}

}  // namespace tessera
