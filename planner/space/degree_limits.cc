#include "planner/space/degree_limits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cost_models/packing.h"
#include "planner/engines/engine_check.h"
#include "planner/space/place_pools.h"

namespace tessera {
namespace {

/// One role with what is fixed of it.
struct FixedRole {
  const PlanRequest& request;
  const Capabilities& table;
  Role role;

  std::optional<std::int64_t> find(Field field) const { return request.fixed.find(role, field); }
  /// "actor.tp=8".
  std::string word(Field field) const {
    return std::string(name_of(role)) + "." + std::string(name_of(field)) + "=" +
           std::to_string(find(field).value_or(0));
  }
  bool served() const {
    return role == Role::rollout || (role == Role::reward && table.serving.reward);
  }
};

std::string beyond_blocks(const FixedRole& of) {
  const std::int64_t node = of.request.cluster.gpus_per_node;
  const std::vector<int> sizes = block_sizes(of.request.cluster);
  const auto gpus = of.find(Field::gpus);
  if (gpus && std::find(sizes.begin(), sizes.end(), *gpus) == sizes.end()) {
    std::string list;
    for (const int size : sizes) {
      if (size > node) break;
      list += (list.empty() ? "" : ", ") + std::to_string(size);
    }
    return of.word(Field::gpus) + ": the planner's blocks of GPUs divide a node of " +
           std::to_string(node) + " (" + list + ") or are whole nodes of the " +
           std::to_string(of.request.cluster.nodes);
  }
  const auto tp = of.find(Field::tp);
  if (tp && node % *tp != 0) {
    return of.word(Field::tp) + " does not divide a node of " + std::to_string(node) +
           " GPUs, which tensor parallelism stays in";
  }
  return {};
}

// Degrees whose product is no part of the GPUs that there are, or that are fixed.
std::string beyond_gpus(const FixedRole& of) {
  constexpr std::array kDegrees{Field::tp, Field::cp, Field::pp, Field::dp};
  const std::int64_t gpus = of.find(Field::gpus).value_or(of.request.cluster.gpus());
  std::int64_t product = 1;
  std::string words;
  for (const Field field : kDegrees) {
    const auto degree = of.find(field);
    if (!degree || *degree == 1) continue;
    words += (words.empty() ? "" : " ") + of.word(field);
    // What is too much stays too much.
    product = *degree > gpus ? gpus + 1 : std::min(product, gpus) * *degree;
  }
  if (product > gpus) {
    return words + " needs more than the " + std::to_string(gpus) + " GPUs that " +
           (of.find(Field::gpus) ? of.word(Field::gpus) + " leaves it" : "the cluster has");
  }
  if (of.find(Field::gpus) && gpus % product != 0) {
    return words + ": " + std::to_string(gpus) + " GPUs are no multiple of " +
           std::to_string(product);
  }
  return {};
}

std::string beyond_model(const FixedRole& of) {
  const ModelSpec model = model_of(of.request, of.role);
  const auto tp = of.find(Field::tp), pp = of.find(Field::pp);
  const HeadRule rule = of.served() ? of.table.serving.heads : of.table.training.heads;
  const std::string heads = std::to_string(model.query_heads) + " attention heads";
  if (tp && *tp > model.query_heads) {
    return of.word(Field::tp) + ": the model has only " + heads;
  }
  if (tp && !divides_heads(rule, model, *tp)) {
    return of.word(Field::tp) + ": the engine cuts the model's " + heads + " (" +
           std::to_string(model.kv_heads) + " of keys and values) and its MLP of " +
           std::to_string(model.ffn) + " columns into equal parts, and they have no " +
           std::to_string(*tp);
  }
  if (pp && *pp > model.layers) {
    return of.word(Field::pp) + ": the model has only " + std::to_string(model.layers) +
           " layers, and a pipeline stage needs one at least";
  }
  return {};
}

// Chunks of virtual stages are equal, and their micro-batches come in the engine's whole rounds.
std::string beyond_stages(const FixedRole& of) {
  const std::int64_t vpp = of.find(Field::vpp).value_or(1);
  const auto pp = of.find(Field::pp);
  if (vpp == 1) return {};
  if (vpp > kMostVirtualStages) {
    return of.word(Field::vpp) + ": plans have at most " + std::to_string(kMostVirtualStages) +
           " virtual stages on a rank";
  }
  const std::string words = (pp ? of.word(Field::pp) + " " : "") + of.word(Field::vpp);
  if (pp && *pp == 1) return words + ": a pipeline of one stage has no virtual ones";
  const std::int64_t layers = model_of(of.request, of.role).layers;
  const std::int64_t sequences =
      dealt_to_replicas(of.request.workload, engine_named(of.request.engine).prompts, of.role) /
      of.find(Field::dp).value_or(1);
  bool equal = false;
  for (std::int64_t depth = pp.value_or(2); depth <= pp.value_or(layers); ++depth) {
    if (layers % (depth * vpp) != 0) continue;
    equal = true;
    if (fills_rounds(of.request.traits.pipeline.interleaved, static_cast<int>(depth),
                     static_cast<int>(vpp), sequences)) {
      return {};
    }
  }
  if (equal) {
    return words +
           ": the engine runs virtual stages on a multiple of pp micro-batches, which the " +
           std::to_string(sequences) + " sequences of a replica do not fill";
  }
  return words + ": virtual stages have equally many layers, and the model's " +
         std::to_string(layers) + " are no multiple of " +
         (pp ? std::to_string(*pp * vpp) : "pp x " + std::to_string(vpp) + " with any pp above 1");
}

std::string beyond_batch(const FixedRole& of) {
  const auto dp = of.find(Field::dp);
  if (!dp) return {};
  const Workload& workload = of.request.workload;
  const PromptDealing prompts = engine_named(of.request.engine).prompts;
  const std::int64_t dealt = dealt_to_replicas(workload, prompts, of.role);
  if (of.role == Role::rollout) {
    if (*dp <= dealt) return {};
    return of.word(Field::dp) + ": a step has only " + std::to_string(dealt) +
           (prompts == PromptDealing::whole_prompts ? " prompts" : " sequences") +
           ", and each replica needs one at least";
  }
  if (dealt % *dp == 0) return {};
  return of.word(Field::dp) + " does not divide the " + std::to_string(dealt) + " sequences of a " +
         (is_trained(workload, of.role) ? "mini-batch" : "step");
}

}  // namespace

LayerShape layer_to_cut(const ModelSpec& model) {
  std::int64_t layer = model.layers - 1;
  while (model.moe && layer > 0 && !is_moe_layer(model, layer)) --layer;
  return layer_shape(model, kind_of_layer(model, layer));
}

std::int64_t dealt_to_replicas(const Workload& workload, PromptDealing prompts, Role role) {
  if (role == Role::rollout && prompts == PromptDealing::whole_prompts) {
    return workload.prompts_per_step;
  }
  const std::int64_t sequences = workload.sequences();
  return is_trained(workload, role) ? sequences / workload.mini_batches : sequences;
}

std::string refused_degrees(const PlanRequest& request, const Capabilities& table, Role role) {
  const FixedRole of{request, table, role};
  for (const auto& says : {beyond_blocks, beyond_gpus, beyond_model, beyond_stages, beyond_batch}) {
    if (std::string why = says(of); !why.empty()) return why;
  }
  return {};
}

}  // namespace tessera
