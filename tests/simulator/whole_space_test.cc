// Plans of the whole space (engine "any"), simulated: the planner's closed forms are the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/engines/engine.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "simulator/engine/report.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

Plan planned(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty()) << (problems.empty() ? "" : to_string(problems[0]));
  if (!outcome) return {};
  if (const Infeasible* none = std::get_if<Infeasible>(&*outcome)) {
    ADD_FAILURE() << (none->reasons.empty() ? "infeasible" : none->reasons[0]);
    return {};
  }
  return std::get<Plan>(*outcome);
}

ModelSpec sparse_model() {
  ModelSpec model = llama_8b();
  model.family = ModelFamily::mixtral;
  model.layers = 16;
  model.hidden = 2048;
  model.query_heads = 16;
  model.kv_heads = 8;
  model.moe = MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 4096};
  return model;
}

PlanRequest request_for(const ModelSpec& model, std::vector<std::string> fixed, int nodes = 2) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 128;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 2048;
  workload.response_tokens = {2048, 0, 2048};
  workload.mini_batches = 2;
  PlanRequest request = request_of(model, workload, cluster_of(8, nodes, 80));
  request.engine = "any";
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

struct Case {
  const char* name;
  bool sparse;
  std::vector<std::string> fixed;
};

class WholeSpace : public testing::TestWithParam<Case> {
 protected:
  static PlanRequest request() {
    return request_for(GetParam().sparse ? sparse_model() : llama_8b(), GetParam().fixed);
  }
};

// Peaks are those of the same function of the same stages; times differ by what the closed forms
// leave out: the prefill's first draw, whole sequences in micro-batches, the first gather of a
// pass.
TEST_P(WholeSpace, SimulatesWhatThePlannerMakes) {
  const PlanRequest asked = request();
  const Plan plan = planned(asked);
  ASSERT_FALSE(plan.roles.empty());
  const Simulation simulated = simulate(plan, asked.calibration);
  EXPECT_EQ(simulated.peak_bytes(), plan.prediction.peak_bytes);
  EXPECT_NEAR(simulated.step_s / plan.prediction.step_s.value, 1, 0.05);
  for (const auto& [phase, seconds] : plan.prediction.phases_s) {
    if (seconds < 0.02 * plan.prediction.step_s) continue;
    EXPECT_NEAR(simulated.phases_s.at(phase) / seconds.value, 1, 0.08) << name_of(phase);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, WholeSpace,
    testing::Values(Case{"Free", false, {}}, Case{"Fsdp", false, {"actor.zero=3"}},
                    Case{"FsdpOfANode", false, {"actor.zero=3", "actor.dp_shard=8", "actor.tp=1"}},
                    Case{"Context", false, {"actor.cp=2"}},
                    Case{"VirtualStages", false, {"actor.pp=4", "actor.vpp=2"}},
                    Case{"Selective", false, {"actor.recompute=selective", "actor.pp=2"}},
                    Case{"Offload", false, {"actor.offload=all"}},
                    Case{"OptimizerOffload", false, {"actor.offload=optimizer"}},
                    Case{"PipelinedRollout", false, {"rollout.pp=2"}},
                    Case{"Split", false, {"placement=actor+reference|rollout"}},
                    Case{"Experts", true, {"actor.ep=4", "actor.tp=2"}},
                    Case{"ExpertsOverNodes", true, {"actor.ep=8", "actor.tp=1", "actor.pp=1"}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

// FSDP over one replica of Ulysses' groups, which gather although there is nobody else.
TEST(VerlsUlysses, SimulatesWhatThePlannerMakes) {
  PlanRequest asked = request_for(llama_8b(), {"actor.cp=8", "actor.zero=3"}, 1);
  asked.engine = "verl";
  asked.workload.prompt_tokens = 8000;
  asked.workload.response_tokens = {8000, 0, 8000};
  const Plan plan = planned(asked);
  ASSERT_FALSE(plan.roles.empty());
  const RolePlan& actor = *plan.find(Role::actor);
  EXPECT_EQ(actor.layout.dp, 1);
  const Simulation simulated = simulate(plan, asked.calibration);
  EXPECT_EQ(simulated.peak_bytes(), plan.prediction.peak_bytes);
  for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
    EXPECT_NEAR(simulated.phases_s.at(phase) / plan.prediction.phases_s.at(phase).value, 1, 0.02);
  }
  const IterationTasks tasks = build_iteration(plan, asked.calibration);
  const auto gathers = std::count_if(
      tasks.graph.tasks.begin(), tasks.graph.tasks.end(),
      [](const Task& task) { return task.name.starts_with("gather ") && task.duration_ns > 0; });
  EXPECT_GT(gathers, 0);
  EXPECT_GT(plan.reshard.front().lower_bound_bytes, 0);
}

TEST(WholeSpaceTasks, ShardedParametersAreGatheredBesideTheLayersBefore) {
  const PlanRequest asked =
      request_for(llama_8b(), {"actor.zero=3", "actor.tp=1", "actor.pp=1", "placement=colocated"});
  const Plan plan = planned(asked);
  const IterationTasks tasks = build_iteration(plan, asked.calibration);
  const auto runs = run(tasks.graph);
  std::int64_t gathered = 0, overlapped = 0;
  for (std::size_t i = 0; i < tasks.graph.tasks.size(); ++i) {
    const Task& task = tasks.graph.tasks[i];
    if (task.name != "shards of F0" || task.phase != Phase::update_actor) continue;
    ++gathered;
    EXPECT_EQ(task.stream, Stream::communication);
    EXPECT_EQ(task.ranks.size(), static_cast<std::size_t>(plan.find(Role::actor)->layout.dp_shard));
    for (std::size_t j = i; j < tasks.graph.tasks.size(); ++j) {
      const Task& other = tasks.graph.tasks[j];
      if (other.name != "F0" || other.ranks.front() != task.ranks.front()) continue;
      if (other.phase != task.phase) continue;
      overlapped += runs[j].start_ns < runs[i].end_ns && runs[i].start_ns < runs[j].end_ns ? 1 : 0;
      break;
    }
  }
  EXPECT_GT(gathered, 0);
  EXPECT_EQ(overlapped, gathered);
}

TEST(WholeSpaceTasks, ChunksOfVirtualStagesShortenTheBubble) {
  const auto idle = [](const char* chunks) {
    const PlanRequest asked = request_for(
        llama_8b(), {"actor.pp=4", std::string("actor.vpp=") + chunks, "actor.dp=4", "actor.tp=1",
                     "actor.tokens=32768", "actor.recompute=full", "placement=colocated"});
    const Plan plan = planned(asked);
    return simulate(plan, asked.calibration).phases_idle.at(Phase::update_actor);
  };
  EXPECT_LT(idle("2"), 0.8 * idle("1"));
}

// Small micro-batches in six chunks a stage: the last stage hands all of them on but one.
TEST(WholeSpaceTasks, InterleavedStagesSendFromTheirLastStageToo) {
  Problems problems;
  PlanRequest asked = request_for(
      llama_8b(), {"actor.tp=4", "actor.pp=6", "actor.vpp=6", "actor.dp=2", "actor.tokens=768"}, 6);
  ModelSpec& model = asked.models.at("actor").spec;
  model.layers = 36;
  asked.engine = "megatron";
  asked.workload.algorithm = "custom";
  asked.workload.dataflow = {{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}};
  asked.workload.prompts_per_step = 48;
  asked.workload.samples_per_prompt = 1;
  asked.workload.prompt_tokens = 128;
  asked.workload.response_tokens = {256, 0, 256};
  const Plan plan = planned(asked);
  ASSERT_FALSE(plan.roles.empty());
  const Simulation simulated = simulate(plan, asked.calibration);
  EXPECT_NEAR(simulated.step_s / plan.prediction.step_s.value, 1, 0.035);
}

TEST(WholeSpaceTasks, PlanAndSimulationReportTheSameLimit) {
  const PlanRequest asked = request_for(llama_8b(), {});
  const Plan plan = planned(asked);
  const std::int64_t limit = usable_memory(plan, asked.calibration);
  char share[32];
  std::snprintf(
      share, sizeof share, "%.1f",
      100.0 * static_cast<double>(plan.prediction.peak_bytes.value) / static_cast<double>(limit));
  EXPECT_NE(describe(plan, &asked.calibration).find(std::string(share) + " %"), std::string::npos);
  const std::string simulated = to_text(simulate(plan, asked.calibration), plan, asked.calibration);
  EXPECT_NE(simulated.find(std::string(share) + "%"), std::string::npos);
}

TEST(WholeSpaceTasks, ARoleHasTheGroupsOfItsCandidate) {
  for (const std::vector<std::string>& fixed :
       std::vector<std::vector<std::string>>{{"actor.tp=2", "actor.pp=2"},
                                             {"actor.cp=2", "actor.tp=2"},
                                             {"actor.zero=3"},
                                             {"actor.tp=8"},
                                             {"actor.pp=4", "actor.tp=4"}}) {
    const PlanRequest asked = request_for(llama_8b(), fixed);
    const Plan plan = planned(asked);
    for (const RolePlan& role : plan.roles) {
      const CandidateGroups ours = groups_of(plan, role, rank_map_of(plan, role.role));
      const CandidateGroups theirs = groups_of(candidate_of(plan, role), asked);
      EXPECT_EQ(ours.tp, theirs.tp);
      EXPECT_EQ(ours.cp, theirs.cp);
      EXPECT_EQ(ours.shard, theirs.shard);
      EXPECT_EQ(ours.replicas, theirs.replicas);
      EXPECT_EQ(ours.replicated, theirs.replicated);
      EXPECT_EQ(ours.hop, theirs.hop);
    }
  }
}

TEST(WholeSpaceTasks, ARolloutOfExpertsHasTheGroupsOfItsCandidate) {
  for (const std::vector<std::string>& fixed :
       std::vector<std::vector<std::string>>{{"rollout.ep=8", "rollout.tp=2", "rollout.pp=2"},
                                             {"rollout.ep=8", "rollout.tp=8", "rollout.pp=1"},
                                             {"rollout.ep=8", "rollout.tp=4", "rollout.pp=1"},
                                             {"rollout.ep=4", "rollout.tp=2", "rollout.pp=1"},
                                             {"rollout.ep=2", "rollout.tp=1", "rollout.pp=4"}}) {
    const PlanRequest asked = request_for(sparse_model(), fixed);
    const Plan plan = planned(asked);
    const RolePlan& role = *plan.find(Role::rollout);
    const CandidateGroups ours = groups_of(plan, role, rank_map_of(plan, role.role));
    const CandidateGroups theirs = groups_of(candidate_of(plan, role), asked);
    EXPECT_EQ(ours.ep, theirs.ep) << fixed[0] << " " << fixed[1];
    EXPECT_EQ(ours.tp, theirs.tp);
    EXPECT_EQ(ours.hop, theirs.hop);
  }
}

// Every group of tensor parallelism over both nodes: what the simulator plays is what the plan's
// candidate costs, and no longer what it costs in the search's own order.
TEST(WholeSpaceTasks, APlansOwnOrderOfRanksIsPricedAsItIsSimulated) {
  const PlanRequest asked =
      request_for(llama_8b(), {"actor.tp=8", "actor.pp=1", "placement=colocated"});
  Plan plan = planned(asked);
  RolePlan& actor = *std::find_if(plan.roles.begin(), plan.roles.end(),
                                  [](const RolePlan& role) { return role.role == Role::actor; });
  PlanRequest request = asked;
  request.traits = traits_of(asked.engine, {});
  EXPECT_EQ(nodes_of(plan, actor, request), GroupNodes{});
  actor.rank_order = RankOrder::list;
  EXPECT_EQ(nodes_of(plan, actor, request), GroupNodes{});  // the same order, listed
  for (std::size_t i = 0; i < actor.ranks.size(); ++i) {
    actor.ranks[i] = static_cast<int>(i % 2 * 8 + i / 2);
  }
  EXPECT_EQ(nodes_of(plan, actor, request).tp.nodes, 2);
  CostEvaluator costs = evaluator_of(plan, asked.calibration);
  const PhaseSeconds seconds = costs.seconds(candidate_of(plan, actor));
  const Simulation simulated = simulate(plan, asked.calibration);
  for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
    const double planned = seconds[phase];
    EXPECT_GT(planned, 1.2 * plan.prediction.phases_s.at(phase)) << name_of(phase);
    EXPECT_NEAR(simulated.phases_s.at(phase) / planned, 1, 0.05) << name_of(phase);
  }
}

// Megatron deals pipelines slowest: its replicas are neighbours and its stages lie apart.
TEST(WholeSpaceTasks, MegatronsOrderIsPricedAsItIsSimulated) {
  PlanRequest asked =
      request_for(llama_8b(), {"actor.pp=2", "actor.tp=2", "actor.vpp=1", "actor.gpus=16"});
  asked.engine = "verl-megatron";
  asked.traits = traits_of(asked.engine);
  const Plan plan = planned(asked);
  ASSERT_FALSE(plan.roles.empty());
  const RolePlan& actor = *plan.find(Role::actor);
  EXPECT_EQ(actor.rank_order, RankOrder::megatron);
  EXPECT_EQ(nodes_of(plan, actor, asked), GroupNodes{});
  const CandidateGroups groups = groups_of(plan, actor, rank_map_of(plan, Role::actor));
  EXPECT_EQ(groups.replicas.nodes, 1);  // 8 ranks of one stage
  EXPECT_EQ(groups.hop.nodes, 2);
  const Simulation simulated = simulate(plan, asked.calibration);
  for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
    EXPECT_NEAR(simulated.phases_s.at(phase) / plan.prediction.phases_s.at(phase).value, 1, 0.05);
  }
}

// Of drawn lengths the step waits for the slowest replica; the mean of many draws is the oracle.
TEST(WholeSpaceTasks, GenerationIsPlannedAsItIsSimulatedOnAverage) {
  const std::vector<std::int64_t> table = {50,  60,  80,  90,  100, 110, 120, 150,
                                           180, 200, 250, 300, 400, 600, 900, 1500};
  double sum = 0, squares = 0;
  for (const std::int64_t length : table) {
    sum += static_cast<double>(length);
    squares += static_cast<double>(length * length);
  }
  const double mean = sum / 16;
  const LengthSpec measured{mean, std::sqrt(squares / 16 / mean / mean - 1), 1500, table};
  struct Generation {
    LengthSpec lengths;
    bool sparse;
    std::string engine;
    std::vector<std::string> fixed;
    std::int64_t prompts = 128;
  };
  for (const Generation& one : std::vector<Generation>{
           {{640, 0.5, 1024}, false, "tessera", {"rollout.tp=1"}},
           {{640, 0.5, 1024}, false, "tessera", {"rollout.tp=1", "rollout.max_sequences=12"}},
           {{640, 0.5, 1024}, false, "verl", {"rollout.tp=2", "rollout.max_sequences=16"}},
           {{900, 0.5, 4096}, false, "verl", {"rollout.tp=1"}},
           // A paged cache that overflows at times, and shares that differ by a sequence or prompt.
           {{2000, 1.0, 16384}, false, "verl", {"rollout.tp=1", "rollout.max_sequences=20"}},
           {{640, 0.5, 1024}, false, "verl", {"rollout.tp=1"}, 110},
           // Four sequences a replica, of which the longest decides.
           {{1024, 0.5, 8192}, false, "any", {"rollout.tp=1"}, 16},
           {{640, 0.5, 1024}, false, "tessera", {"rollout.tp=1"}, 110},
           {{900, 1.0, 8192}, true, "any", {"rollout.ep=8", "rollout.tp=1"}},
           {{900, 0.5, 4096}, true, "any", {"rollout.ep=4", "rollout.pp=2"}},
           {measured, false, "tessera", {"rollout.tp=1", "rollout.max_sequences=20"}},
           {measured, true, "any", {"rollout.tp=4"}}}) {
    PlanRequest asked = request_for(one.sparse ? sparse_model() : llama_8b(), one.fixed);
    asked.workload.response_tokens = one.lengths;
    asked.workload.prompts_per_step = one.prompts;
    asked.engine = one.engine;
    asked.traits = traits_of(one.engine);
    const Plan plan = planned(asked);
    ASSERT_FALSE(plan.roles.empty());
    constexpr int kDraws = 32;
    double seconds = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      SimulationOptions options;
      options.seed = static_cast<std::uint64_t>(draw) + 1;
      options.rollout_segments = 1;
      seconds += simulate(plan, asked.calibration, options).phases_s.at(Phase::gen) / kDraws;
    }
    EXPECT_NEAR(plan.prediction.phases_s.at(Phase::gen) / seconds, 1, 0.05)
        << one.engine << " " << one.fixed[0] << " of " << one.lengths.max;
  }
}

// Of few drawn lengths a step waits for the slowest replica, and packs them in more micro-batches
// than of many.
TEST(WholeSpaceTasks, PassesOfFewSequencesArePlannedAsTheyAreSimulatedOnAverage) {
  struct Few {
    std::string engine;
    std::vector<std::string> fixed;
    std::int64_t prompts;  // one sequence of each, on 8 GPUs
    double cv = 0.5;
  };
  for (const Few& one :
       std::vector<Few>{{"any", {"actor.dp=8", "actor.zero=2"}, 8},
                        {"any", {"actor.dp=8", "actor.zero=1"}, 16},
                        {"any", {"actor.zero=3", "actor.dp=8"}, 8},
                        {"any", {"actor.zero=3", "actor.dp=8"}, 32},
                        {"tessera", {"actor.zero=3", "actor.dp=8"}, 128},
                        {"verl", {"actor.zero=3", "actor.dp=8"}, 24, 1.0},
                        {"any", {"actor.tp=2", "actor.dp=4"}, 16, 1.0},
                        {"any", {"actor.tp=4", "actor.dp=2"}, 8},
                        {"any", {"actor.pp=2", "actor.vpp=1", "actor.dp=4"}, 32},
                        // Micro-batches of a longest sequence or less, which differ.
                        {"any", {"actor.pp=8", "actor.vpp=1", "actor.tokens=4608"}, 16, 1.0},
                        {"any", {"actor.pp=8", "actor.vpp=2", "actor.tokens=4608"}, 16, 1.0},
                        {"any", {"actor.pp=4", "actor.vpp=2", "actor.tokens=4608"}, 24, 1.0},
                        // In verl's order.
                        {"verl-megatron", {"actor.pp=4", "actor.tokens=4608"}, 16, 1.0},
                        {"verl-megatron", {"actor.pp=8", "actor.tokens=4608"}, 16, 1.0}}) {
    PlanRequest asked = request_for(llama_8b(), one.fixed, 1);
    asked.workload.prompts_per_step = one.prompts;
    asked.workload.samples_per_prompt = 1;
    asked.workload.mini_batches = 1;
    asked.workload.prompt_tokens = 512;
    asked.workload.response_tokens = {1024, one.cv, 4096};
    asked.engine = one.engine;
    asked.traits = traits_of(one.engine);
    const Plan plan = planned(asked);
    ASSERT_FALSE(plan.roles.empty()) << one.fixed[0];
    constexpr int kDraws = 48;
    std::map<Phase, double> seconds;
    for (int draw = 0; draw < kDraws; ++draw) {
      SimulationOptions options;
      options.seed = static_cast<std::uint64_t>(draw) + 1;
      options.rollout_segments = 1;
      const Simulation simulated = simulate(plan, asked.calibration, options);
      for (const Phase phase : {Phase::update_actor, Phase::old_log_prob}) {
        seconds[phase] += simulated.phases_s.at(phase) / kDraws;
      }
    }
    for (const auto& [phase, mean] : seconds) {
      EXPECT_NEAR(plan.prediction.phases_s.at(phase) / mean, 1, 0.06)
          << one.engine << " " << one.fixed[0] << " " << one.prompts << " " << name_of(phase);
    }
  }
}

}  // namespace
}  // namespace tessera
