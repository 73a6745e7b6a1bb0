// What verl's software takes of the host: fetched references, packed micro-batches.
#include <gtest/gtest.h>

#include "cost_models/compute.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
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

}  // namespace
}  // namespace tessera
