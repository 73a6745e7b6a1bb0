#include "planner/search/request.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> all, large;
  for (int d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    all.push_back(d);
    if (d != number / d) large.push_back(number / d);
  }
  all.insert(all.end(), large.rbegin(), large.rend());
  return all;
}

}  // namespace

std::string model_key(const PlanRequest& request, Role role) {
  const std::string own(name_of(role));
  const bool scores = role == Role::critic || role == Role::reward;
  return scores && request.models.contains(own) ? own : "actor";
}

ModelSpec model_of(const PlanRequest& request, Role role) {
  ModelSpec model = request.models.at(model_key(request, role)).spec;
  const bool scores = role == Role::critic || role == Role::reward;
  model.head = scores ? ModelHead::value : ModelHead::language_model;
  return model;
}

RoleDTypes dtypes_of(const PlanRequest& request, Role role) {
  if (const auto own = request.dtypes.find(role); own != request.dtypes.end()) return own->second;
  RoleDTypes dtypes;
  dtypes.param = model_of(request, role).dtype;
  dtypes.kv = dtypes.wire = dtypes.param;
  if (request.traits.narrow_gradients) dtypes.grad = dtypes.param;
  return dtypes;
}

std::vector<Role> roles_of(const Workload& workload) {
  std::array<bool, kRoleCount> present{};
  for (const Call& call : workload.dataflow) {
    if (call.kind == CallKind::compute) continue;
    const Role role = call.kind == CallKind::generate ? Role::rollout : call.role;
    present[static_cast<std::size_t>(role)] = true;
  }
  if (present[static_cast<std::size_t>(Role::rollout)]) present[0] = true;  // its weights' source
  std::vector<Role> roles;
  for (int i = 0; i < kRoleCount; ++i) {
    if (present[static_cast<std::size_t>(i)]) roles.push_back(static_cast<Role>(i));
  }
  return roles;
}

bool is_trained(const Workload& workload, Role role) {
  return std::any_of(workload.dataflow.begin(), workload.dataflow.end(), [&](const Call& call) {
    return call.role == role && call.kind == CallKind::train;
  });
}

std::vector<Phase> phases_of(const Workload& workload, Role role) {
  std::vector<Phase> phases;
  for (const Call& call : workload.dataflow) {
    const Role runs = call.kind == CallKind::generate ? Role::rollout : call.role;
    if (runs == role && call.kind != CallKind::compute) phases.push_back(call.phase);
  }
  return phases;
}

std::int64_t longest_sequence(const Workload& workload) {
  return workload.prompt_tokens + workload.response_tokens.max;
}

std::vector<LayerRange> cut_stages(std::int64_t layers, int pp, int vpp, int head_layers) {
  std::vector<LayerRange> stages = even_stages(layers + head_layers, pp, vpp);
  for (LayerRange& range : stages) {
    range.first = std::min(range.first, layers);
    range.last = std::min(range.last, layers);
  }
  return stages;
}

ParallelLayout layout_of(const Candidate& candidate, std::int64_t layers) {
  ParallelLayout layout;
  layout.tp = candidate.tp;
  layout.cp = candidate.cp;
  layout.pp = candidate.pp;
  layout.vpp = candidate.vpp;
  layout.dp_replicate = candidate.dp / candidate.dp_shard;
  layout.dp_shard = candidate.dp_shard;
  layout.ep = candidate.ep;
  layout.etp = candidate.etp;
  layout.zero = candidate.zero;
  layout.sequence_parallel = candidate.sequence_parallel;
  layout.ulysses = candidate.ulysses;
  layout.stages = cut_stages(layers, candidate.pp, candidate.vpp, candidate.head_layers);
  return layout;
}

RankOrder training_order(const Candidate& candidate) {
  const bool trained = candidate.role != Role::rollout;
  return trained && candidate.ep > 1 ? RankOrder::megatron : RankOrder::contiguous;
}

RankOrder rollout_order(const Candidate& actor, const Candidate& rollout) {
  const bool divides = actor.gpus == rollout.gpus && actor.cp == 1 && actor.dp_shard == 1 &&
                       actor.vpp == 1 && actor.ep == 1 && rollout.ep == 1 &&
                       actor.tp % rollout.tp == 0 && actor.pp % rollout.pp == 0;
  return divides ? RankOrder::strided : RankOrder::contiguous;
}

bool takes_rank_lists(std::string_view engine) { return engine == "tessera"; }

std::vector<int> block_sizes(const ClusterSpec& cluster) {
  std::vector<int> sizes = divisors(static_cast<int>(cluster.gpus_per_node));
  for (int node = 2; node <= cluster.nodes; ++node) {
    sizes.push_back(node * static_cast<int>(cluster.gpus_per_node));
  }
  return sizes;
}

std::vector<int> place_blocks(const std::vector<int>& sizes, const ClusterSpec& cluster) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  const int per_node = static_cast<int>(cluster.gpus_per_node);
  std::vector<int> first(sizes.size());
  std::vector<int> used;  // GPUs taken on each opened node
  for (const std::size_t block : order) {
    const int size = sizes[block];
    auto node =
        std::find_if(used.begin(), used.end(), [&](int taken) { return size <= per_node - taken; });
    if (node == used.end()) {
      const int nodes = (size + per_node - 1) / per_node;
      if (static_cast<std::int64_t>(used.size()) + nodes > cluster.nodes) return {};
      first[block] = static_cast<int>(used.size()) * per_node;
      used.insert(used.end(), static_cast<std::size_t>(nodes), std::min(size, per_node));
    } else {
      first[block] = static_cast<int>(node - used.begin()) * per_node + *node;
      *node += size;
    }
  }
  return first;
}

}  // namespace tessera
