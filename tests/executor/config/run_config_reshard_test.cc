// The section `reshard` of a run.yaml, before what the plan says.
#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"
#include "tests/executor/config/good_run.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

std::string with_reshard(const std::string& options) {
  return std::string(kGoodRun) + "reshard: {" + options + "}\n";
}

TEST(RunConfig, ReshardsTakeThePlansWaysAndTheFilesOptions) {
  Plan plan = sample_plan();
  ASSERT_FALSE(plan.reshard.empty());
  plan.reshard[0].transport = ReshardTransport::copy_engine;
  plan.reshard[0].bucket_bytes = Bytes{4096};
  Problems problems;
  const auto none = parse_run_config(kGoodRun, "run.yaml", plan, problems);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->reshard.transport, ReshardTransport::copy_engine);
  EXPECT_EQ(none->reshard.bucket_bytes, 4096);
  EXPECT_FALSE(none->reshard.wire || none->reshard.verify || none->reshard.incremental ||
               none->reshard.overlap);
  plan.reshard[0].transport = ReshardTransport::automatic;
  plan.reshard[0].bucket_bytes = {};
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::fp32;
  const auto given =
      parse_run_config(with_reshard("transport: send_recv, bucket_bytes: 99, wire: fp16, "
                                    "wire_from_step: 3, verify: true, storage: keep"),
                       "run.yaml", plan, problems);
  ASSERT_TRUE(given) << to_string(problems.at(0));
  EXPECT_EQ(given->reshard.transport, ReshardTransport::send_recv);
  EXPECT_EQ(given->reshard.bucket_bytes, 99);
  EXPECT_EQ(given->reshard.wire, DType::fp16);
  EXPECT_EQ(given->reshard.wire_from_step, 3);
  EXPECT_TRUE(given->reshard.verify);
}

TEST(RunConfig, OptionsOfAReshardThatExcludeOneAnotherAreRefused) {
  Plan plan = sample_plan();
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::fp32;
  const auto refused = [&](const std::string& options, const std::string& expected) {
    Problems problems;
    EXPECT_FALSE(parse_run_config(with_reshard(options), "run.yaml", plan, problems)) << options;
    ASSERT_EQ(problems.size(), 1u) << options;
    EXPECT_NE(problems[0].expected.find(expected), std::string::npos) << to_string(problems[0]);
  };
  refused("overlap: true, incremental: true", "finished weights");
  refused("overlap: true, transport: send_recv", "read peers' memory");
  refused("incremental: true, wire: bf16", "as they are");
  refused("incremental: true, transport: window", "does not gather");
  refused("wire_from_step: 2", "without 'wire'");
  refused("wire: int8", "bf16");
  refused("storage: away", "keep or unmap");
  refused("preload: true", "storage unmap");
  refused("transport: pigeon", "copy_engine");
  refused("verified: true", "a known key");
  plan.reshard[0].transport = ReshardTransport::host;
  refused("transport: send_recv", "host, the plan's");
  plan.reshard[0].keep = false;
  refused("storage: keep", "unmap, as the plan's memory needs");
  plan.reshard[0].mode = ReshardMode::full;
  refused("verify: true", "minimal reshard");
  plan.reshard[0].keep = true;
  plan.reshard[0].transport = ReshardTransport::automatic;
  plan.reshard[0].bucket_bytes = {};
  refused("transport: send_recv", "gathered by messages");
  refused("bucket_bytes: 4096", "gathered by messages");
  plan.reshard[0].mode = ReshardMode::minimal;
  plan.cluster.gpus_per_node = plan.world_size() / 2;
  refused("overlap: true", "one host");
  for (RolePlan& role : plan.roles) role.dtypes.param = DType::bf16;
  plan.reshard[0].mode = ReshardMode::minimal;
  refused("wire: fp16", "fp32 weights");
}

}  // namespace
}  // namespace tessera
