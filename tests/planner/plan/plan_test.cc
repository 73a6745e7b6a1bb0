#include "planner/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

TEST(Plan, TheSampleIsValid) {
  Problems problems;
  validate(sample_plan(), "p", problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
}

TEST(Plan, FindsRolesAndCountsItsRanks) {
  Plan plan = sample_plan();
  EXPECT_EQ(plan.find(Role::critic)->layout.pp, 2);
  EXPECT_EQ(plan.find(Role::reward), nullptr);
  EXPECT_EQ(plan.world_size(), 4);
  plan.roles.clear();
  EXPECT_EQ(plan.world_size(), 0);
}

TEST(Plan, CriticAndRewardModelsScoreTokensAndTheOthersPredictThem) {
  const Plan plan = sample_plan();
  EXPECT_EQ(plan.model_of(Role::critic).head, ModelHead::value);
  for (const Role role : {Role::actor, Role::rollout, Role::reference}) {
    EXPECT_EQ(plan.model_of(role).head, ModelHead::language_model);
  }
}

TEST(Plan, TheRolloutIsStridedOverTheActor) {
  // HybridFlow 5.3 with t = p = 2, t_g = 2, p_g = 1: A = 1, B = 2, so dp_g = i_p % 2.
  const RankMap map = rank_map_of(sample_plan(), Role::rollout);
  for (int rank = 0; rank < 4; ++rank) {
    const RankCoord& coord = map.coords[static_cast<std::size_t>(map.index_of(rank))];
    EXPECT_EQ(coord.tp, rank % 2);
    EXPECT_EQ(coord.dp_replicate, rank / 2);
  }
}

TEST(DefaultSchedule, WaitsForEveryInputAndForTheReshard) {
  const auto schedule = default_schedule(sample_plan().workload);
  const auto after = [&](Phase phase) {
    const auto found = std::find_if(schedule.begin(), schedule.end(), [&](const auto& scheduled) {
      return scheduled.phase == phase;
    });
    return found == schedule.end() ? std::vector<Phase>{} : found->after;
  };
  using enum Phase;
  EXPECT_EQ(schedule.front().phase, reshard);
  EXPECT_EQ(schedule.size(), 9u);
  EXPECT_EQ(after(gen), (std::vector<Phase>{reshard}));
  EXPECT_EQ(after(old_log_prob), (std::vector<Phase>{gen}));
  EXPECT_EQ(after(adv), (std::vector<Phase>{old_log_prob, ref, values, reward}));
  EXPECT_EQ(after(update_critic), (std::vector<Phase>{gen, values, adv}));
  EXPECT_EQ(after(update_actor), (std::vector<Phase>{gen, old_log_prob, adv}));
}

struct Contradiction {
  const char* place;
  const char* found;
  std::function<void(Plan&)> make;
};

const Contradiction kContradictions[] = {
    {"/models", "no 'actor'", [](Plan& p) { p.models.clear(); }},
    {"/models/critic", "no role uses", [](Plan& p) { p.models["critic"] = p.models["actor"]; }},
    {"/models/actor/config_sha256", "xyz",
     [](Plan& p) { p.models["actor"].config_sha256 = "xyz"; }},
    {"/workload/algorithm", "dpo", [](Plan& p) { p.workload.algorithm = "dpo"; }},
    {"/dataflow", "not those of ppo", [](Plan& p) { p.workload.kl = KlPlace::none; }},
    {"/dataflow", "a cycle",
     [](Plan& p) { p.workload.dataflow[0].inputs.push_back("advantages"); }},
    {"/schedule/0/after", "\"gen\"", [](Plan& p) { p.schedule[0].after = {Phase::gen}; }},
    {"/schedule/1/after", "\"gen\"", [](Plan& p) { p.schedule[1].after = {Phase::gen}; }},
    {"/schedule/9/call", "a second time", [](Plan& p) { p.schedule.push_back(p.schedule.back()); }},
    {"/schedule/1/role", "\"critic\"", [](Plan& p) { p.schedule[1].role = Role::critic; }},
    {"/schedule", "no call 'update_actor'", [](Plan& p) { p.schedule.pop_back(); }},
    {"/schedule", "\"gen\" without waiting for 'reshard'",
     [](Plan& p) { p.schedule[1].after.clear(); }},
    {"/schedule", "\"update_actor\" without waiting for 'adv'",
     [](Plan& p) {
       p.schedule.back().after = {Phase::gen, Phase::old_log_prob};
     }},
    {"/roles/0/ranks", "no ranks", [](Plan& p) { p.roles[0].ranks.clear(); }},
    {"/roles/0/ranks", "7", [](Plan& p) { p.roles[0].ranks[3] = 7; }},
    {"/roles/0/ranks", "1 a second time", [](Plan& p) { p.roles[0].ranks[2] = 1; }},
    {"/roles/0/ranks", "rank 1 after rank 2",
     [](Plan& p) {
       p.roles[0].ranks = {0, 2, 1, 3};
     }},
    {"/roles/1/role", "\"actor\"", [](Plan& p) { p.roles[1].role = Role::actor; }},
    {"/roles", "no 'critic'", [](Plan& p) { p.roles.erase(p.roles.begin() + 2); }},
    {"/roles/4/role", "\"reward\"",
     [](Plan& p) { p.roles.push_back(sample_role(Role::reward, {0}, 1, 1, 1, 0)); }},
    {"/roles/2/model", "\"value\"", [](Plan& p) { p.roles[2].model = "value"; }},
    {"/roles/0/layout", "= 8", [](Plan& p) { p.roles[0].layout.tp = 4; }},
    {"/roles/0/layout/stages", "1 ranges", [](Plan& p) { p.roles[0].layout.stages.pop_back(); }},
    {"/roles/2/layout/zero", "3 with dp_shard 1", [](Plan& p) { p.roles[2].layout.zero = 3; }},
    {"/roles/2/rank_map", "strided", [](Plan& p) { p.roles[2].rank_order = RankOrder::strided; }},
    {"/roles/1/rank_map", "",
     [](Plan& p) {
       p.roles[1].ranks = {0, 1};
       p.roles[1].layout.dp = 1;
     }},
    {"/roles/0/batching/mini_batch", "128", [](Plan& p) { p.roles[0].batching.mini_batch = 128; }},
    {"/roles/1/batching/max_sequences", "0",
     [](Plan& p) { p.roles[1].batching.max_sequences = 0; }},
    {"/reshard", "no pair", [](Plan& p) { p.reshard.clear(); }},
    {"/reshard/1", "again", [](Plan& p) { p.reshard.push_back(p.reshard[0]); }},
    {"/reshard/0", "critic to rollout", [](Plan& p) { p.reshard[0].from = Role::critic; }},
    {"/reshard/0/digest", "\"12\"", [](Plan& p) { p.reshard[0].digest = "12"; }},
    {"/reshard/0/bytes_received", "1", [](Plan& p) { p.reshard[0].bytes_received = Bytes{1}; }},
    {"/environment/0/name", "\"A B\"", [](Plan& p) { p.environment[0].name = "A B"; }},
    {"/environment/0/value", "/tmp/x", [](Plan& p) { p.environment[0].value = "/tmp/x"; }},
    {"/environment/0/value", "0\n", [](Plan& p) { p.environment[0].value = "0\nrm -r x"; }},
    {"/environment/0/value", "$(", [](Plan& p) { p.environment[0].value = "$(id)"; }},
    {"/environment/1/name", "a second time",
     [](Plan& p) { p.environment.push_back(p.environment[0]); }},
};

// By ld.so(8), environ(7), bash(1), the Python and Open MPI manuals and "Environment Variables" of
// NCCL's user guide: all of them load or start something, or open a file or a port.
TEST(Plan, NoVariableThatLoadsOrStartsOrOpensSomethingIsTaken) {
  for (const char* name : {"LD_PRELOAD",
                           "LD_LIBRARY_PATH",
                           "LD_AUDIT",
                           "PATH",
                           "PYTHONPATH",
                           "PYTHONSTARTUP",
                           "BASH_ENV",
                           "HOME",
                           "OMPI_MCA_mca_base_component_path",
                           "CUDA_MODULE_LOADING",
                           "HF_ENDPOINT",
                           "NCCL_NET_PLUGIN",
                           "NCCL_TUNER_PLUGIN",
                           "NCCL_PROFILER_PLUGIN",
                           "NCCL_ENV_PLUGIN",
                           "NCCL_CONF_FILE",
                           "NCCL_TOPO_FILE",
                           "NCCL_TOPO_DUMP_FILE",
                           "NCCL_GRAPH_FILE",
                           "NCCL_GRAPH_DUMP_FILE",
                           "NCCL_DEBUG_FILE",
                           "NCCL_COMM_ID",
                           "NCCL_RAS_ADDR",
                           "NCCL_nvls_enable",
                           "NCCL_"}) {
    Plan plan = sample_plan();
    plan.environment.push_back({name, "1", "of a stranger"});
    Problems problems;
    validate(plan, "p.json", problems);
    ASSERT_EQ(problems.size(), 1U) << name;
    EXPECT_EQ(problems[0].file, "p.json");
    EXPECT_EQ(problems[0].place, "/environment/1/name");
    EXPECT_EQ(problems[0].found, "\"" + std::string(name) + "\"");
    EXPECT_NE(problems[0].expected.find("a variable that Tessera writes"), std::string::npos);
  }
}

TEST(Plan, EveryContradictionIsRefusedAtItsPlace) {
  for (const Contradiction& contradiction : kContradictions) {
    SCOPED_TRACE(std::string(contradiction.place) + ": " + contradiction.found);
    Plan plan = sample_plan();
    contradiction.make(plan);
    Problems problems;
    validate(plan, "p.json", problems);
    bool named = false;
    std::string all;
    for (const Problem& problem : problems) {
      all += to_string(problem) + "\n";
      named |= problem.file == "p.json" && problem.place == contradiction.place &&
               problem.found.find(contradiction.found) != std::string::npos;
    }
    EXPECT_TRUE(named) << all;
  }
}

}  // namespace
}  // namespace tessera
