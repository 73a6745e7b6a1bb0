// The byte-exact reshard that a plan prescribes for one pair of its roles.
#include <array>
#include <cstdio>

#include "cost_models/adapters.h"
#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/parameter_table.h"
#include "planner/plan/plan.h"
#include "planner/plan/reshard_mode.h"

namespace tessera {
namespace {

enum class Moved { weights, adapters };

Moved moved_in_a_step(const Plan& plan, const PlannedReshard& pair) {
  return moves_adapters_alone(plan, pair) ? Moved::adapters : Moved::weights;
}

ReshardPlan planned(const Plan& plan, const PlannedReshard& pair, Moved moved, bool listed) {
  const RolePlan* const source = plan.find(pair.from);
  TESSERA_CHECK(source != nullptr && plan.find(pair.to) != nullptr);
  ModelSpec model = plan.model_of(pair.from);
  if (plan.find(pair.to)->mtp == MtpUse::left_out) model.mtp = MtpUse::left_out;
  const ParameterTable table = parameter_table(model);
  const RankMap from = rank_map_of(plan, pair.from), to = rank_map_of(plan, pair.to);
  const DType wire = source->dtypes.wire;
  const ReshardOptions options = reshard_options(plan);
  if (moved == Moved::adapters) {
    const ParameterTable adapters = adapter_table(table, plan.find(pair.to)->lora);
    return plan_reshard(model_tensors(adapters, adapter_map(from), adapter_map(to), wire), options);
  }
  if (pair.mode == ReshardMode::full) {
    return plan_reshard(full_gather_tensors(table, from, to, wire), options);
  }
  if (!listed) return reshard_totals(table, from, to, wire, options);
  return plan_reshard(model_tensors(table, from, to, wire), options);
}

}  // namespace

ReshardOptions reshard_options(const Plan& plan) {
  const auto per_node = plan.cluster.gpus_per_node;
  return {.node_of = [per_node](int rank) { return static_cast<int>(rank / per_node); }};
}

ReshardPlan reshard_plan_of(const Plan& plan, const PlannedReshard& pair) {
  return planned(plan, pair, moved_in_a_step(plan, pair), true);
}

ReshardPlan reshard_totals_of(const Plan& plan, const PlannedReshard& pair) {
  return planned(plan, pair, moved_in_a_step(plan, pair), false);
}

bool moves_adapters_alone(const Plan& plan, const PlannedReshard& pair) {
  const RolePlan* const to = plan.find(pair.to);
  return to != nullptr && to->lora.moves_adapters() && pair.keep &&
         pair.mode == ReshardMode::minimal;
}

Bytes first_bytes(const Plan& plan, const PlannedReshard& pair) {
  if (!moves_adapters_alone(plan, pair)) return {};
  return planned(plan, pair, Moved::weights, false).bytes_received;
}

void set_reshard_mode(Plan& plan, ReshardMode mode) {
  for (PlannedReshard& pair : plan.reshard) {
    if (pair.mode == mode) continue;
    pair.mode = mode;
    const Bytes least = pair.lower_bound_bytes;  // of the layouts, whatever the mode moves
    set_exact(plan, pair);
    pair.lower_bound_bytes = least;
  }
}

void set_exact(const Plan& plan, PlannedReshard& pair) {
  set_exact(pair, reshard_plan_of(plan, pair));
  if (!plan.find(pair.to)->lora.moves_adapters() || moves_adapters_alone(plan, pair)) return;
  const ReshardPlan adapters = planned(plan, pair, Moved::adapters, false);
  pair.bytes_received += adapters.bytes_received;
  pair.lower_bound_bytes += adapters.lower_bound;
  pair.total_received_bytes += adapters.total_received;
}

void set_exact(PlannedReshard& pair, const ReshardPlan& exact) {
  pair.digest = digest_text(exact.digest);
  pair.bytes_received = exact.bytes_received;
  pair.lower_bound_bytes = exact.lower_bound;
  pair.total_received_bytes = exact.total_received;
}

std::string digest_text(std::uint64_t digest) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(digest));
  return text.data();
}

void check_reshard_digests(const Plan& plan, const std::string& file, Problems& problems) {
  for (std::size_t i = 0; i < plan.reshard.size(); ++i) {
    const PlannedReshard& pair = plan.reshard[i];
    if (!has_exact_reshard(pair)) continue;
    const std::string digest = digest_text(reshard_totals_of(plan, pair).digest);
    if (digest == pair.digest) continue;
    problems.push_back({file, "/reshard/" + std::to_string(i) + "/digest",
                        "\"" + pair.digest + "\"", "\"" + digest + "\", which the layouts give",
                        "the plan was changed by hand or comes from another version: plan again"});
  }
}

}  // namespace tessera
