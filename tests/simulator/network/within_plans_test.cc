// Plans for GPUs that share switches and sockets: what is planned is what is simulated.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/settings.h"
#include "simulator/engine/simulate.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest request_on(SharedLink pcie_switch, SharedLink socket, std::vector<std::string> fixed) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {512, 0, 512};
  workload.mini_batches = 2;
  ClusterSpec cluster = cluster_of(8, 1, 80);
  cluster.device.name = "L40S-48GB";
  cluster.intra_per_gpu = gb_per_s(32);
  cluster.pcie_switch = pcie_switch;
  cluster.socket = socket;
  PlanRequest request = request_of(llama_8b(), workload, cluster, "l40s");
  request.engine = "tessera";
  request.traits = traits_of(request.engine);
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

Plan planned(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty() && outcome && std::holds_alternative<Plan>(*outcome));
  return std::get<Plan>(*outcome);
}

TEST(WithinPlans, OfSharedLinksAreSimulatedAsTheyArePlanned) {
  const SharedLink pcie_switch{4, gb_per_s(32)}, socket{4, gb_per_s(12)};
  int slower = 0;
  for (const std::vector<std::string>& fixed :
       std::vector<std::vector<std::string>>{{"actor.tp=8", "actor.pp=1"},
                                             {"actor.tp=2", "actor.pp=1"},
                                             {"actor.tp=1", "actor.pp=1", "actor.zero=1"},
                                             {"actor.tp=1", "actor.pp=1", "actor.zero=3"},
                                             {"actor.tp=4", "actor.pp=2"},
                                             {"actor.tp=1", "actor.pp=2"},
                                             {"rollout.tp=8"},
                                             {"rollout.tp=2"}}) {
    const Plan plan = planned(request_on(pcie_switch, socket, fixed));
    const Plan free = planned(request_on({}, {}, fixed));
    const Simulation simulated = simulate(plan, request_on(pcie_switch, socket, fixed).calibration);
    if (plan.prediction.step_s > 1.001 * free.prediction.step_s) ++slower;
    for (const Phase phase : {Phase::gen, Phase::old_log_prob, Phase::update_actor}) {
      // Not all groups cross a link at once, as plans count.
      const double part = simulated.phases_s.at(phase) / plan.prediction.phases_s.at(phase).value;
      EXPECT_GT(part, 0.93) << fixed.front() << ", " << name_of(phase);
      EXPECT_LT(part, 1.03) << fixed.front() << ", " << name_of(phase);
    }
  }
  EXPECT_GE(slower, 3);
}

// Half of the ranks of each socket read all that they lack from the other one.
TEST(WithinPlans, OfAReshardOverSocketsAreSimulatedAsTheyArePlanned) {
  for (const double rate : {6.0, 12.0}) {
    const PlanRequest request =
        request_on({4, gb_per_s(32)}, {4, gb_per_s(rate)}, {"actor.tp=8", "rollout.tp=4"});
    const Plan plan = planned(request);
    const double planned_s = plan.prediction.phases_s.at(Phase::reshard).value;
    const double free_s = planned(request_on({}, {}, {"actor.tp=8", "rollout.tp=4"}))
                              .prediction.phases_s.at(Phase::reshard)
                              .value;
    EXPECT_GT(planned_s, 1.5 * free_s);
    EXPECT_NEAR(simulate(plan, request.calibration).phases_s.at(Phase::reshard) / planned_s, 1,
                0.03);
  }
}

}  // namespace
}  // namespace tessera
