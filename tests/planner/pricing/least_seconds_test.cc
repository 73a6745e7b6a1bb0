// The least seconds of a layout, which the search cuts by, against those of all its token limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/space/layout_space.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

struct Compared {
  std::size_t phases = 0;
  double tightness = 0;  // sum of bound by least
  double glanced = 0;    // sum of what is told at a glance by the bound
};

// Of every layout and choice of a role on so many GPUs.
void compare(CostEvaluator& costs, const Capabilities& table, Role role, int gpus,
             Compared& compared) {
  const Workload& workload = costs.request().workload;
  DistinctLimits limits(workload);
  for (const LayoutSpace& space : enumerate_layouts(costs.request(), table, role, gpus, limits)) {
    for (const MemoryChoice& choice : space.choices) {
      const PhaseSeconds bound =
          costs.least_seconds(space.at(choice, space.batches.back()), space.batches.front().tokens);
      const PhaseSeconds glanced = costs.glanced_seconds(space.at(choice, space.batches.back()),
                                                         space.batches.front().tokens);
      PhaseSeconds least;
      least.fill(kForever);
      for (const BatchLimit& batch : space.batches) {
        lower(least, costs.seconds(space.at(choice, batch)));
      }
      for (const Phase phase : phases_of(workload, role)) {
        ASSERT_LE(bound[phase], least[phase] * (1 + 1e-9))
            << name_of(role) << " " << name_of(phase) << " tp" << space.layout.tp << " pp"
            << space.layout.pp << " vpp" << space.layout.vpp << " dp" << space.layout.dp << " cp"
            << space.layout.cp << " ep" << space.layout.ep;
        ASSERT_LE(glanced[phase], bound[phase])
            << name_of(role) << " " << name_of(phase) << " tp" << space.layout.tp << " pp"
            << space.layout.pp << " vpp" << space.layout.vpp << " dp" << space.layout.dp << " cp"
            << space.layout.cp << " ep" << space.layout.ep;
        compared.tightness += bound[phase] / least[phase];
        compared.glanced += glanced[phase] / bound[phase];
        ++compared.phases;
      }
    }
  }
}

PlanRequest request_with(const char* model, const char* engine, double cv) {
  PlanRequest request = request_for("h800-64");
  Problems problems;
  request.models["actor"] = {*read_model_spec(model, problems), model, ""};
  request.engine = engine;
  request.traits = traits_of(engine);
  request.workload = workload_of("ppo", KlPlace::reward, false);
  request.workload.prompts_per_step = 256;
  request.workload.samples_per_prompt = 2;
  request.workload.mini_batches = 4;
  request.workload.prompt_tokens = 600;
  request.workload.response_tokens = {900, cv, cv > 0 ? 3000 : 900};
  return request;
}

TEST(LeastSeconds, AreNoMoreThanThoseOfAnyTokenLimit) {
  for (const char* model : {"qwen2.5-7b", "qwen3-30b-a3b", "llama3.1-70b"}) {
    for (const char* engine : {"tessera", "verl", "verl-megatron", "megatron"}) {
      for (const double cv : {0.0, 0.6}) {
        const PlanRequest request = request_with(model, engine, cv);
        CostEvaluator costs(request);
        Compared compared;
        for (const Role role : {Role::actor, Role::critic, Role::reference}) {
          for (const int gpus : {8, 32}) {
            compare(costs, engine_named(engine).capabilities, role, gpus, compared);
          }
        }
        EXPECT_GT(compared.phases, 100U) << model << " " << engine;
        EXPECT_GT(compared.tightness / static_cast<double>(compared.phases), 0.8)
            << model << " " << engine;
        EXPECT_GT(compared.glanced / static_cast<double>(compared.phases), 0.5)
            << model << " " << engine;
      }
    }
  }
}

// Of a rollout the bound is of one number of sequences at once.
TEST(LeastSeconds, OfGenerationAreNoMoreThanItTakes) {
  for (const char* engine : {"tessera", "verl"}) {
    for (const double cv : {0.0, 0.6}) {
      const PlanRequest request = request_with("qwen3-30b-a3b", engine, cv);
      CostEvaluator costs(request);
      DistinctLimits limits(request.workload);
      int waited_for = 0, together = 0;  // of which the bound says something
      for (const LayoutSpace& space : enumerate_layouts(
               costs.request(), engine_named(engine).capabilities, Role::rollout, 16, limits)) {
        for (const BatchLimit& batch : space.batches) {
          const Candidate candidate = space.at(space.choices.front(), batch);
          const Seconds bound = costs.least_seconds(candidate, batch.tokens)[Phase::gen];
          const Seconds whole = costs.seconds(candidate)[Phase::gen];
          ASSERT_LE(bound, whole) << "tp" << candidate.tp << " " << batch.max_sequences;
          if (bound <= 0.5 * whole) continue;
          ++(batch == space.batches.back() ? together : waited_for);
        }
      }
      EXPECT_GT(waited_for, 10) << engine;
      EXPECT_GT(together, 5) << engine << " " << cv;
    }
  }
}

// One to 16 sequences a replica, whose slowest one and number of micro-batches are means.
TEST(LeastSeconds, OfFewSequencesAreNoMoreThanThoseOfAnyTokenLimit) {
  for (const char* engine : {"tessera", "verl", "verl-megatron", "any"}) {
    for (const double cv : {0.5, 1.5}) {
      PlanRequest request = request_with("qwen2.5-7b", engine, cv);
      request.workload.prompts_per_step = 96;
      request.workload.response_tokens.max = 8192;
      CostEvaluator costs(request);
      Compared compared;
      for (const Role role : {Role::actor, Role::reference}) {
        for (const int gpus : {8, 16}) {
          compare(costs, engine_named(engine).capabilities, role, gpus, compared);
        }
      }
      EXPECT_GT(compared.phases, 100U) << engine;
      EXPECT_GT(compared.tightness / static_cast<double>(compared.phases), 0.8) << engine;
    }
  }
}

// What a search asks for where it wants no seconds.
TEST(EvaluatorBytes, AreThoseOfTheWholePrice) {
  for (const char* engine : {"tessera", "verl", "verl-megatron"}) {
    const PlanRequest request = request_with("qwen3-30b-a3b", engine, 0.6);
    CostEvaluator costs(request);
    const Evaluator evaluator = costs.evaluator();
    DistinctLimits limits(request.workload);
    int within = 0, beyond = 0;  // what a GPU has
    for (const Role role : {Role::actor, Role::rollout, Role::critic}) {
      for (const Candidate& candidate : candidates_of(enumerate_layouts(
               costs.request(), engine_named(engine).capabilities, role, 16, limits))) {
        const RoleCost whole = evaluator.role(candidate), bytes = evaluator.bytes(candidate);
        ASSERT_EQ(bytes.resident, whole.resident);
        ASSERT_EQ(bytes.peak, whole.peak);
        ASSERT_EQ(bytes.in_reshard, whole.in_reshard);
        ASSERT_EQ(bytes.bytes, whole.bytes);
        ASSERT_EQ(bytes.may_shrink, whole.may_shrink);
        ASSERT_EQ(bytes.seconds, PhaseSeconds{});
        ++(whole.seconds == PhaseSeconds{} ? beyond : within);
      }
    }
    EXPECT_GT(within, 100) << engine;
    EXPECT_GT(beyond, 10) << engine;
  }
}

}  // namespace
}  // namespace tessera
