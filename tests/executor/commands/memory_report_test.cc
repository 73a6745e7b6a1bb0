// What a report concludes from the account of a rank, on GPUs that are not here.
#include "executor/commands/memory_report.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/request_reader.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

const Plan& the_plan() {
  static const Plan plan = [] {
    Problems problems;
    PlanRequest request = read_request({.model = "qwen2.5-7b",
                                        .cluster = "h200-8",
                                        .workload = "grpo-7b-1k",
                                        .fixed = {"actor.tp=2", "rollout.tp=1"}},
                                       problems);
    request.calibration = calibration_for_cluster(request.cluster, problems).value();
    return std::get<Plan>(make_plan(request, problems).value());
  }();
  return plan;
}

/// A GPU of 139.8 GiB that is full, `short_of` GiB too small.
MemoryRefusal full_gpu(std::int64_t short_of) {
  return {.asked_by = "torch",
          .requested = short_of * kGiB,
          .limit = 140 * kGiB,
          .in_use = {.tensors = 106 * kGiB,
                     .idle = 3 * kGiB,
                     .arenas = 20 * kGiB,
                     .context = 1 * kGiB,
                     .libraries = 9 * kGiB},
          .largest = {{4 * kGiB, 2}, {1 * kGiB, 7}},
          .allocator = "expandable_segments:True"};
}

TEST(MemoryReport, ALimitThatFitsIsThePlansOverWhatWasNeeded) {
  const MemoryReport report =
      memory_report(the_plan(), full_gpu(6), 1, "cuda:1", Phase::update_actor, 3);
  ASSERT_TRUE(report.planned);
  const PlannedMemory& planned = *report.planned;
  EXPECT_EQ(planned.phase, Phase::update_actor);
  EXPECT_EQ(planned.sum, Bytes{planned.use.total()} + planned.reserve);
  EXPECT_NEAR(report.measured_share, 145.0 / gib(planned.sum), 1e-9);
  ASSERT_GT(report.measured_share, 1);
  EXPECT_NEAR(gib(report.would_fit), gib(planned.limit) / report.measured_share, 1e-6);
  EXPECT_LT(report.would_fit, planned.sum);
}

TEST(MemoryReport, ALowerLimitOfTheRunCounts) {
  MemoryRefusal refusal = full_gpu(1);
  refusal.limit = 40 * kGiB;
  refusal.in_use = {.tensors = 30 * kGiB, .context = kGiB, .libraries = 9 * kGiB};
  const MemoryReport report =
      memory_report(the_plan(), refusal, 0, "cuda:0", Phase::update_actor, 1);
  ASSERT_LT(report.measured_share, 1);
  EXPECT_LT(gib(report.would_fit), 40);
  EXPECT_GT(gib(report.would_fit), 36);
}

TEST(MemoryReport, LoadingIsHeldAgainstTheFullestPhase) {
  const MemoryReport report = memory_report(the_plan(), full_gpu(1), 0, "cuda:0", Phase::load, 0);
  ASSERT_TRUE(report.planned);
  EXPECT_EQ(report.planned->phase, Phase::update_actor);
}

TEST(MemoryReport, SaysEveryClassAndTheCommand) {
  const MemoryReport report =
      memory_report(the_plan(), full_gpu(6), 1, "cuda:1", Phase::update_actor, 3);
  const std::string text = describe(report, "tessera plan --from RUN/plan.json");
  for (const char* words :
       {"out of memory on rank 1 (cuda:1) in phase update_actor of step 3",
        "torch asked for 6.00 GiB with 139.00 GiB in use of 140.00 GiB", "tensors 106.00 GiB",
        "reserved by torch and idle 3.00 GiB", "arenas 20.00 GiB", "device context 1.00 GiB",
        "NCCL and libraries 9.00 GiB", "2 x 4.00 GiB, 7 x 1.00 GiB", "expandable_segments:True",
        "activations ", "tessera plan --from RUN/plan.json --memory-limit-gib "}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json.at("in_use_bytes").at("total"), 139 * kGiB);
  char limit[32];
  std::snprintf(limit, sizeof limit, "%.4f", json.at("memory_limit_gib").get<double>());
  EXPECT_THAT(text, HasSubstr(std::string("--memory-limit-gib ") + limit + "\n"));
}

TEST(MemoryReport, TheFirstRankWritesIt) {
  const TemporaryFolder folder;
  const auto of_rank = [](int rank) {
    return memory_report(the_plan(), full_gpu(6), rank, "cuda", Phase::gen, 2);
  };
  EXPECT_THAT(tell(of_rank(3), folder.path, "plan"), HasSubstr("rank 3 ran out of memory"));
  EXPECT_THAT(tell(of_rank(1), folder.path, "plan"), HasSubstr("rank 1 ran out of memory"));
  const auto kept = nlohmann::json::parse(std::ifstream(folder.path / "oom.json"));
  EXPECT_EQ(kept.at("rank"), 3);
  const auto files = std::filesystem::directory_iterator(folder.path);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace
}  // namespace tessera
