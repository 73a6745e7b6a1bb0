// What software takes when weights go to the rollout: a fact of the engine, priced with the
// reshard.
#include <gtest/gtest.h>

#include <cmath>

#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest request_for(const std::string& engine, const std::string& model) {
  Problems problems;
  const ClusterSpec cluster = read_cluster_spec("h200-8", problems).value();
  PlanRequest request = request_of(read_model_spec(model, problems).value(),
                                   workload_of("grpo", KlPlace::none, false), cluster);
  request.calibration = calibration_for_cluster(cluster, problems).value();
  request.engine = engine;
  request.traits = traits_of(engine);
  EXPECT_TRUE(problems.empty());
  return request;
}

Candidate sharded(int gpus) {
  Candidate actor{{.dp = gpus}, Role::actor, gpus, 3, 16384};
  actor.dp_shard = gpus;
  return actor;
}

Candidate replicas(int gpus) { return {{.dp = gpus}, Role::rollout, gpus, 0, 8192, 64}; }

Seconds priced(const PlanRequest& request, bool shared, int gpus = 4) {
  CostEvaluator costs(request);
  return costs.reshard_seconds(sharded(gpus), replicas(gpus), shared);
}

Seconds without_software(PlanRequest request, bool shared, int gpus = 4) {
  request.traits.handover = {};
  return priced(request, shared, gpus);
}

// verl 0.9.1 on H200s of four hosts, FSDP and FSDP2 to vLLM TP1: means of timing_s/update_weights
// behind the first step (benchmarks/results/h200-verl-host.json, h200x2-verl-7b.json,
// h200x4-verl-7b.json). Hosts differ by more than models and numbers of GPUs do.
TEST(Handover, TakesWhatVerlWasMeasuredToTake) {
  struct Measured {
    const char* model;
    int gpus;
    double seconds;
  };
  double sum = 0;
  for (const Measured& of : {Measured{"qwen2.5-0.5b", 1, 0.41}, Measured{"qwen2.5-1.5b", 1, 0.44},
                             Measured{"qwen2.5-7b", 2, 0.50}, Measured{"qwen2.5-7b", 4, 1.07}}) {
    const double ratio = priced(request_for("verl", of.model), true, of.gpus) / Seconds{of.seconds};
    EXPECT_GT(ratio, 0.45) << of.model << " " << of.gpus;
    EXPECT_LT(ratio, 1.3) << of.model << " " << of.gpus;
    sum += std::log(ratio) / 4;
  }
  EXPECT_NEAR(std::exp(sum), 0.9, 0.15);
}

// One GPU holds all that it needs, and hands it over all the same.
TEST(Handover, IsPaidWhereNoBytesMove) {
  const PlanRequest request = request_for("verl", "qwen2.5-0.5b");
  EXPECT_EQ(without_software(request, true, 1), 0);
  EXPECT_GT(priced(request, true, 1), request.traits.handover.call);
}

// Experts apart as Qwen's checkpoints have them, packed as gpt-oss' do.
TEST(Handover, CountsTensorsAsTheRolloutLoadsThem) {
  const auto tensors = [](const char* model) {
    const PlanRequest request = request_for("verl", model);
    const HandoverTraits& by = request.traits.handover;
    return (priced(request, true) - without_software(request, true) - by.call) / by.tensor;
  };
  EXPECT_NEAR(tensors("qwen2.5-7b"), 28 * 12 + 3, 1e-6);
  EXPECT_NEAR(tensors("qwen3-30b-a3b"), 48 * (128 * 3 + 9) + 3, 1e-6);
  EXPECT_LT(tensors("gpt-oss-120b"), 1000);
}

TEST(Handover, OfAdaptersCountsTheirs) {
  PlanRequest request = request_for("verl", "qwen2.5-7b");
  request.lora[Role::actor].rank = request.lora[Role::rollout].rank = 8;
  const HandoverTraits& by = request.traits.handover;
  EXPECT_NEAR((priced(request, true) - without_software(request, true) - by.call) / by.tensor,
              28 * 7 * 2, 1e-6);
}

TEST(Handover, ToGpusOfItsOwnGoesInBuckets) {
  const PlanRequest request = request_for("verl", "qwen3-30b-a3b");
  EXPECT_NEAR(priced(request, false) - without_software(request, false),
              request.traits.handover.broadcast_tensor * 18867.0, 1e-9);
}

// What the search adds up, a part of it as the rollout's own, is the whole.
TEST(Handover, IsDividedForTheSearchWithoutLoss) {
  for (const bool shared : {true, false}) {
    CostEvaluator costs(request_for("verl-megatron", "qwen3-30b-a3b"));
    const Evaluator search = costs.evaluator();
    const Seconds own = search.role(replicas(4)).seconds[Phase::reshard];
    EXPECT_GT(own, 0);
    EXPECT_EQ(search.seconds(replicas(4))[Phase::reshard], own);
    EXPECT_NEAR(own + search.reshard_seconds(sharded(4), replicas(4), shared),
                costs.reshard_seconds(sharded(4), replicas(4), shared), 1e-9);
  }
}

TEST(Handover, OfOurOwnEngineIsTheWireAlone) {
  const PlanRequest request = request_for("tessera", "qwen2.5-7b");
  EXPECT_EQ(request.traits.handover, HandoverTraits{});
  EXPECT_EQ(priced(request, true), without_software(request, true));
  CostEvaluator costs(request);
  EXPECT_EQ(costs.evaluator().role(replicas(4)).seconds[Phase::reshard], 0);
}

}  // namespace
}  // namespace tessera
