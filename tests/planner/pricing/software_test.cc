// What verl's software takes of the host: fetched references, packed micro-batches.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "cost_models/compute.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/request/candidate.h"
#include "tests/planner/pricing/small_request.h"

namespace tessera {
namespace {

// What verl's workers do of forward_only: FSDP and torchtitan force CPUOffload, VeOmni has an
// option.
TEST(FetchedReference, IsOfTheEnginesThatForceIt) {
  EXPECT_TRUE(traits_of("verl").shards.frozen_fetched);
  EXPECT_TRUE(traits_of("verl-torchtitan").shards.frozen_fetched);
  EXPECT_FALSE(traits_of("verl-veomni").shards.frozen_fetched);
  EXPECT_EQ(traits_of("verl-torchtitan").kernels.launch, 1);  // compiled, and not measured
}

// The device waits for the host once, whether kernels run behind it or not.
TEST(Software, OfAMicroBatchIsCountedOnce) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  for (const bool overlapped : {true, false}) {
    request.calibration.overlapped_dispatch = overlapped;
    const auto update = [&](Seconds trained) {
      request.traits.software.scored = Seconds{};
      request.traits.software.trained = trained;
      return CostEvaluator(request)
          .cost({{.dp = 8}, Role::actor, 8, 0, kLongest})
          .seconds[Phase::update_actor];
    };
    const double passes = (update(Seconds{1}) - update(Seconds{})) / Seconds{1};
    EXPECT_GT(passes, 30) << overlapped;  // 64 sequences a replica, one or two a micro-batch
    EXPECT_LT(passes, 65) << overlapped;
  }
}

// A server hands every token of its sequences over, beside the engine's steps: a generation takes
// no less, whatever runs on the GPU, and not more where that takes longer.
TEST(FrontEnd, BoundsTheStepsOfItsServer) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  const auto gen = [&](Seconds token, Seconds crowded) {
    request.traits.decode.token_served = token;
    request.traits.decode.token_crowded = crowded;
    return CostEvaluator(request)
        .cost({{.dp = 8}, Role::rollout, 8, 0, kLongest, 64})
        .seconds[Phase::gen];
  };
  const Seconds device = gen({}, {}), slow = gen(Seconds{1e-3}, {});
  EXPECT_EQ(gen(Seconds{1e-9}, Seconds{1e-12}), device);
  EXPECT_GT(slow, 2 * device);
  // 64 sequences a server crowd nobody; 256 are a doubling of 128.
  EXPECT_EQ(gen(Seconds{1e-3}, Seconds{1e-3}), slow);
  request.workload.prompts_per_step *= 4;
  const Seconds more = gen(Seconds{1e-3}, {});
  EXPECT_NEAR(gen(Seconds{1e-3}, Seconds{0.5e-3}) / more, 1.5, 0.05);
  request.workload.prompts_per_step /= 4;
  request.calibration.serving.value = 2;
  EXPECT_GT(gen(Seconds{1e-3}, {}), 1.8 * slow);
  request.calibration.serving.value = 1;
  // Requests that wait for a slot crowd the server, too: of 512 with 129 at once a token took verl
  // 82 us, with all at once 77 (benchmarks/results/h200x2-verl-plans.json, -pairs.json).
  request.workload.prompts_per_step *= 8;
  const auto at_once = [&](std::int64_t sequences) {
    request.traits.decode.token_served = request.traits.decode.token_crowded = Seconds{1e-3};
    return CostEvaluator(request)
        .cost({{.dp = 8}, Role::rollout, 8, 0, kLongest, sequences})
        .seconds[Phase::gen];
  };
  EXPECT_NEAR(at_once(128) / at_once(512), 1, 0.05);
}

// FSDP's CPUOffload fetches a reference's fp32 shards layer by layer in every micro-batch: beside
// the layers where those take longer, else they are what the pass takes.
TEST(FetchedReference, ComesInEveryPass) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  const auto ref = [&](std::int64_t sequences, bool fetched) {
    request.traits.shards.frozen_fetched = fetched;
    return CostEvaluator(request)
        .cost({{.dp = 8}, Role::reference, 8, 0, sequences * kLongest})
        .seconds[Phase::ref];
  };
  const double layer = 4.0 * (4096LL * (32 + 16) * 128 + 4096LL * 4096 + 3LL * 4096 * 14336 + 8192);
  const Seconds pass = 32 * host_copy_seconds(Traffic{layer}, request.calibration);
  // 512 sequences over 8 replicas: 64 passes of one, 8 of eight.
  const Seconds ones = ref(1, true) - ref(1, false), eights = ref(8, true) - ref(8, false);
  EXPECT_GT(ones, 10 * eights);
  EXPECT_GT(ref(1, true), 63 * pass);
  EXPECT_LT(ref(1, true), 66 * pass + ref(1, false));
}

CallTime call_of(const PlanRequest& request, const Candidate& candidate, Phase phase) {
  CostEvaluator costs(request);
  return costs.pricer(candidate.role, 0).call_time(candidate, phase);
}

// Both fall to the host in the parts of a step, and are no communication.
TEST(HostPart, HasTheSoftwareOfMicroBatchesAndWhatAReferenceFetches) {
  PlanRequest with = small_request();
  with.engine = "verl";
  with.traits = traits_of("verl");
  PlanRequest without = with;
  without.traits.software.scored = without.traits.software.trained = Seconds{};
  without.traits.shards.frozen_fetched = false;
  const Candidate actor{{.dp = 8}, Role::actor, 8, 0, kLongest};
  Candidate reference{{.dp = 8}, Role::reference, 8, 0, kLongest}, sharded = reference;
  sharded.zero = 3;
  sharded.dp_shard = 8;
  for (const auto& [candidate, phase] :
       {std::pair{actor, Phase::update_actor}, std::pair{actor, Phase::old_log_prob},
        std::pair{reference, Phase::ref}, std::pair{sharded, Phase::ref}}) {
    const CallTime more = call_of(with, candidate, phase),
                   less = call_of(without, candidate, phase);
    const Seconds longer = more.whole.seconds - less.whole.seconds;
    EXPECT_GT(longer, Seconds{1}) << name_of(phase);
    EXPECT_GT(more.host - less.host, 0.8 * longer) << name_of(phase);
    // Gathers that layers hid come to light beside fetches, and a longer last pass hides more of
    // the gradients' reduction.
    const Seconds moved = more.whole.communication - less.whole.communication;
    EXPECT_NEAR((more.host - less.host + moved) / longer, 1, 1e-9) << name_of(phase);
    EXPECT_LT(std::abs(moved.value), 0.2 * longer.value) << name_of(phase);
    if (candidate.dp_shard == 1 && phase != Phase::update_actor) {
      EXPECT_EQ(moved, 0) << name_of(phase);
    }
  }
}

// An embedding and a head that are not tied come in every pass, tied ones once a call.
TEST(FetchedReference, ComesWithTheHeadOfAnUntiedModel) {
  PlanRequest request = small_request();
  request.engine = "verl";
  request.traits = traits_of("verl");
  request.calibration.overlapped_dispatch = false;  // nothing hides anything
  const auto fetched = [&](bool tied) {
    request.models.at("actor").spec.tied_embeddings = tied;
    const Candidate reference{{.dp = 8}, Role::reference, 8, 0, kLongest};
    PlanRequest whole = request;
    whole.traits.shards.frozen_fetched = false;
    return call_of(request, reference, Phase::ref).host -
           call_of(whole, reference, Phase::ref).host;
  };
  const Seconds head = host_copy_seconds(Traffic{4.0 * 128256 * 4096}, request.calibration);
  const double passes = ((fetched(false) - fetched(true)) / head + 1) / 2;
  EXPECT_NEAR(passes, std::round(passes), 1e-3);
  EXPECT_GT(passes, 50);  // of one sequence or two
  request.calibration.overlapped_dispatch = true;
  EXPECT_GT(fetched(false) - fetched(true), passes * 1.5 * head);  // a layer hides less than half
}

}  // namespace
}  // namespace tessera
