#include "tests/planner/offered/random_problems.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

template <class T>
T pick(std::mt19937_64& random, const std::vector<T>& from) {
  return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
}

bool chance(std::mt19937_64& random, double of) {
  return std::uniform_real_distribution<double>(0, 1)(random) < of;
}

void limit_nodes(ClusterSpec& cluster, int most, std::mt19937_64& random) {
  std::vector<std::int64_t> counts;
  for (const std::int64_t nodes : {1, 2, 3, 4, 5, 8, 16, 32, 64}) {
    if (nodes <= most && nodes < cluster.nodes) counts.push_back(nodes);
  }
  if (cluster.nodes <= most) counts.push_back(cluster.nodes);
  const std::int64_t nodes = pick(random, counts);
  if (cluster.groups.empty()) {
    cluster.nodes = nodes;
    return;
  }
  cluster.nodes = 0;
  for (NodeGroup& group : cluster.groups) {
    group.nodes = std::min(group.nodes, std::max<std::int64_t>(1, nodes / 2));
    cluster.nodes += group.nodes;
  }
}

Workload random_workload(std::mt19937_64& random) {
  Workload workload;
  workload.algorithm = pick<std::string>(random, {"ppo", "grpo"});
  workload.kl = pick(random, std::vector{KlPlace::none, KlPlace::loss, KlPlace::reward});
  workload.dataflow = preset_dataflow(workload.algorithm, workload.kl, chance(random, 0.15));
  workload.prompts_per_step = pick<std::int64_t>(random, {48, 64, 96, 128, 256, 512, 1024});
  workload.samples_per_prompt =
      workload.algorithm == "ppo" ? 1 : pick<std::int64_t>(random, {4, 5, 8, 16});
  workload.prompt_tokens = pick<std::int64_t>(random, {128, 512, 1000, 2048});
  const auto mean = pick<std::int64_t>(random, {256, 512, 1024, 3000});
  const double spread = pick<double>(random, {0, 0.5, 1});
  const std::int64_t longest = spread == 0 ? mean : mean * pick<std::int64_t>(random, {2, 4, 8});
  workload.response_tokens = {static_cast<double>(mean), spread, longest};
  workload.mini_batches = pick<std::int64_t>(random, {1, 2, 4, 8});
  return workload;
}

// To the positions that a model has.
void shorten(Workload& workload, std::int64_t positions) {
  LengthSpec& lengths = workload.response_tokens;
  while (positions > 0 && workload.prompt_tokens + lengths.max > positions) {
    workload.prompt_tokens = std::max<std::int64_t>(8, workload.prompt_tokens / 2);
    lengths.max = std::max<std::int64_t>(8, lengths.max / 2);
    lengths.mean = std::max(8.0, lengths.mean / 2);
  }
}

std::string told_of(const PlanRequest& request, const std::string& cluster) {
  const Workload& load = request.workload;
  std::ostringstream told;
  told << request.models.at("actor").path << " on " << request.cluster.nodes << " nodes of "
       << cluster << ", " << request.engine << ", " << load.algorithm << " kl " << name_of(load.kl)
       << " calls " << load.dataflow.size() << " prompts " << load.prompts_per_step << " x "
       << load.samples_per_prompt << " of " << load.prompt_tokens << " + "
       << load.response_tokens.mean << " cv " << load.response_tokens.cv << " max "
       << load.response_tokens.max << " mini " << load.mini_batches << " for "
       << name_of(request.objective) << " risk " << request.risk
       << (request.one_step_off ? ", one step off" : "");
  return told.str();
}

std::int64_t random_value(const PlanRequest& request, Field field, std::mt19937_64& random) {
  const std::int64_t longest = longest_sequence(request.workload);
  const auto sequences = std::max<std::int64_t>(1, request.workload.sequences());
  const auto between = [&](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, std::max(from, to))(random);
  };
  switch (field) {
    case Field::tokens:
    case Field::update_tokens:
      return chance(random, 0.5) ? longest * between(1, std::max<std::int64_t>(1, 131072 / longest))
                                 : between(longest, std::max<std::int64_t>(longest, 131072));
    case Field::max_sequences:
      return between(1, std::max<std::int64_t>(2, sequences / between(1, 64)));
    case Field::gpus:
      return pick<std::int64_t>(random, {1, 2, 4, 8, 16, 24, 32, 64});
    case Field::zero:
      return between(0, 3);
    case Field::recompute:
    case Field::offload:
      return between(0, 2);
    case Field::context:
    case Field::sequence_parallel:
      return between(0, 1);
    case Field::head_layers:
      return between(0, 3);
    case Field::dp:
    case Field::dp_shard:
    case Field::ep:
      return pick<std::int64_t>(random, {1, 2, 3, 4, 8, 16, 32});
    default:
      return pick<std::int64_t>(random, {1, 2, 3, 4, 8});
  }
}

Field random_field(Role role, std::mt19937_64& random) {
  for (;;) {
    const auto fields = every_field();
    const Field field =
        fields[std::uniform_int_distribution<std::size_t>(0, fields.size() - 1)(random)];
    if (applies(role, field)) return field;
  }
}

}  // namespace

RandomProblem random_problem(std::mt19937_64& random, int most_nodes) {
  Problems problems;
  PlanRequest request;
  const std::string model = pick(random, preset_names("models", ""));
  const std::string cluster = pick(random, preset_names("clusters", ".yaml"));
  auto spec = read_model_spec(model, problems);
  auto found = read_cluster_spec(cluster, problems);
  if (!spec || !found) throw std::runtime_error(to_string(problems.front()));
  request.models["actor"] = {*std::move(spec), model, ""};
  request.cluster = *std::move(found);
  limit_nodes(request.cluster, most_nodes, random);
  auto constants = calibration_for_cluster(request.cluster, problems);
  if (!constants) throw std::runtime_error(to_string(problems.front()));
  request.calibration = *std::move(constants);
  request.workload = random_workload(random);
  shorten(request.workload, context_length(request.models.at("actor").spec));
  std::vector<std::string> engines = engine_names();
  for (int more = 0; more < 4; ++more) engines.emplace_back(kAnyEngine);
  for (const char* loop : {"tessera", "verl", "verl-megatron"}) engines.emplace_back(loop);
  request.engine = pick(random, engines);
  if (chance(random, 0.3)) {
    request.objective = pick(
        random, std::vector{Objective::tokens_per_gpu, Objective::cost, Objective::fewest_gpus});
  }
  request.one_step_off = chance(random, 0.25);
  if (chance(random, 0.2)) request.risk = pick<double>(random, {0.5, 0.1, 0.001});
  RandomProblem problem;
  const std::string engine = request.engine;
  if (auto part = part_for_engine(request, engine)) request = *std::move(part);
  request.engine = engine;
  problem.told = told_of(request, cluster);
  problem.request = std::move(request);
  return problem;
}

FixedSettings random_settings(const PlanRequest& request, const Solution& near,
                              std::mt19937_64& random) {
  FixedSettings fixed;
  const std::vector<Role> roles = roles_of(request.workload);
  if (chance(random, 1.0 / 3)) {
    Problems none;
    fixed = parse_settings(settings_of(near), none);
    if (chance(random, 0.5)) fixed.placement.clear();
  } else if (chance(random, 0.3)) {
    Problems none;
    fixed.placement = describe(pick(random, allowed_placements(request, none)));
  }
  const int count = fixed.values.empty() ? std::uniform_int_distribution(1, 3)(random) : 1;
  for (int i = 0; i < count; ++i) {
    const Role role = pick(random, roles);
    const Field field = random_field(role, random);
    if (!fixed.values.empty() && chance(random, 0.2)) {
      fixed.values.erase({role, field});
      continue;
    }
    fixed.values[{role, field}] = random_value(request, field, random);
  }
  return fixed;
}

std::optional<PlanRequest> part_for_engine(PlanRequest request, const std::string& engine) {
  const Engine& runs = engine_named(engine);
  Problems problems;
  for (const auto& [name, model] : request.models) {
    refuse_model(runs, model, model.path, "model_type", problems);
    refuse_type(runs, model.spec.dtype, model.path, "torch_dtype", problems);
  }
  if (!problems.empty()) return std::nullopt;
  request.engine = engine;
  const std::vector<Role>& known = runs.capabilities.roles;
  std::erase_if(request.workload.dataflow, [&](const Call& call) {
    if (known.empty()) return false;
    const Role role = call.kind == CallKind::generate ? Role::rollout : call.role;
    if (call.kind == CallKind::compute) return known.size() < kEveryRole.size();
    return std::find(known.begin(), known.end(), role) == known.end();
  });
  // A trainer alone trains the actor; whose inputs are then the data's.
  if (known.size() < kEveryRole.size() && !known.empty()) {
    std::erase_if(request.workload.dataflow, [&](const Call& call) {
      return call.kind == CallKind::infer || call.phase == Phase::update_critic;
    });
    for (Call& call : request.workload.dataflow) call.inputs = {"prompts"};
    request.workload.algorithm = "custom";
  }
  if (request.workload.dataflow.empty()) return std::nullopt;
  return request;
}

}  // namespace tessera
