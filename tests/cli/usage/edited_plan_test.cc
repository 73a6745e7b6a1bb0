// Certified plans that somebody edited, before every command that reads one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/reshard_mode.h"
#include "tests/cli/called.h"
#include "tests/cli/usage/usage.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

// An edit of a certified plan, written beside it.
class EditedPlan : public Usage {
 protected:
  static std::string edited(const std::string& name, const std::function<void(Plan&)>& edit) {
    Problems problems;
    auto plan_read = read_plan(plan(), problems);
    EXPECT_TRUE(plan_read);
    edit(*plan_read);
    const fs::path file = folder_ / name;
    write_plan(*plan_read, file);
    return file.string();
  }
};

TEST_F(EditedPlan, FromTheSearchKeepsItsCertificate) {
  EXPECT_THAT(call("explain " + plan()).out, HasSubstr("proven best of the space"));
  const std::string labelled = edited("labelled.json", [](Plan& each) {
    each.environment.push_back({"NCCL_DEBUG", "INFO", "to see"});
    each.models.at("actor").path = "/models/here";
  });
  const Called called = call("explain " + labelled);
  EXPECT_EQ(called.code, 0);
  EXPECT_THAT(called.out, HasSubstr("proven best of the space"));
}

TEST_F(EditedPlan, WithAnotherTimeIsPricedAgainAndFailsTheCheck) {
  const std::string file =
      edited("step.json", [](Plan& each) { each.prediction.step_s = Seconds{1}; });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 1);
  EXPECT_THAT(called.out, HasSubstr("edited since its search"));
  EXPECT_THAT(called.out, HasSubstr("step_s"));
  EXPECT_THAT(called.out, HasSubstr("the file says            1 s"));
  EXPECT_THAT(called.out, HasSubstr("certificate: none"));
  EXPECT_THAT(called.out, Not(HasSubstr("proven best")));
  const Called json = call("explain " + file + " --json", "2>/dev/null");
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(json.out, HasSubstr("\"certified\": false"));
}

TEST_F(EditedPlan, ThatNoLongerFitsIs2WhateverIsAskedOfIt) {
  const std::string file =
      edited("memory.json", [](Plan& each) { each.cluster.device.memory = from_gib(10); });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 2);
  EXPECT_THAT(called.out, HasSubstr("does not fit: "));
  EXPECT_THAT(called.out, Not(HasSubstr("proven best")));
  const Called exported =
      call("export " + file + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_EQ(exported.code, 2);
  EXPECT_THAT(exported.out, HasSubstr("warning: does not fit: "));
  EXPECT_TRUE(fs::exists(folder_ / "exported"));
  const Called simulated = call("simulate " + file);
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.out, HasSubstr("warning: does not fit: "));
  const Called clean =
      call("export " + plan() + " --to torchrun -o " + (folder_ / "exported").string());
  EXPECT_EQ(clean.code, 0);
  EXPECT_THAT(clean.out, Not(HasSubstr("warning")));
}

TEST_F(EditedPlan, WithoutASearchSaysSoAndAgreesWithItsOwnFigures) {
  const std::string file = edited("unsearched.json", [](Plan& each) { each.certificate = {}; });
  const Called called = call("explain " + file);
  EXPECT_EQ(called.code, 0) << called.out;  // the search's figures are the cost model's
  EXPECT_THAT(called.out, HasSubstr("not from a search"));
  EXPECT_THAT(called.out, HasSubstr("the file's times, peak and bytes are those computed"));
  EXPECT_THAT(called.out, HasSubstr("certificate: none"));
}

TEST_F(EditedPlan, RulesOnARunOfAnotherPlanAreRefused) {
  const fs::path run = folder_ / "run";
  fs::create_directories(run);
  std::ofstream(run / "metrics.jsonl") << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0}}\n";
  const std::string words =
      "explain " + plan() + " --rules published-practice --run " + run.string();
  fs::copy_file(plan(), run / "plan.json");
  EXPECT_EQ(call(words).code, 0);
  fs::remove(run / "plan.json");
  fs::rename(edited("other.json", [](Plan& each) { each.roles[0].recompute = Recompute::full; }),
             run / "plan.json");
  const Called other = call(words);
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("a run of another plan"));
}

TEST_F(EditedPlan, BytesAndDigestsOfASwitchAreCheckedLikeTimes) {
  const std::string bytes = edited("bytes.json", [](Plan& each) {
    each.certificate = {};
    each.reshard[0].bytes_received += Bytes{1};
  });
  const Called counted = call("explain " + bytes);
  EXPECT_EQ(counted.code, 1);
  EXPECT_THAT(counted.out, HasSubstr("reshard.0.bytes_received"));
  const std::string digest = edited("digest.json", [](Plan& each) {
    each.certificate = {};
    each.reshard[0].digest = "0123456789abcdef";
  });
  const Called called = call("explain " + digest);
  EXPECT_EQ(called.code, 65);
  EXPECT_THAT(called.out, HasSubstr("/reshard/0/digest"));
}

TEST_F(EditedPlan, ForAnUnknownEngineIsRefusedByEveryCommand) {
  const std::string file = edited("engine.json", [](Plan& each) { each.engine = "verll"; });
  for (const std::string command : {"explain ", "simulate "}) {
    const Called called = call(command + file);
    EXPECT_EQ(called.code, 65) << command;
    EXPECT_THAT(called.out, HasSubstr("did you mean 'verl'?"));
  }
}

TEST_F(EditedPlan, ARunOfAnotherPlanIsNotCompared) {
  const fs::path run = folder_ / "compared";
  fs::create_directories(run);
  Problems problems;
  const auto read = read_plan(plan(), problems);
  ASSERT_TRUE(read);
  std::ofstream(run / "metrics.jsonl")
      << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0, \"reshard/bytes\": "
      << read->reshard.at(0).bytes_received << "}}\n";
  const auto compared = [&](const std::function<void(Plan&)>& edit) {
    fs::rename(edited("ran.json", edit), run / "plan.json");
    return call("compare " + plan() + " " + run.string());
  };
  EXPECT_EQ(compared([](Plan&) {}).code, 0);
  // How weights travel is the run's choice.
  EXPECT_EQ(
      compared([](Plan& ran) { ran.reshard[0].transport = ReshardTransport::send_recv; }).code, 0);
  const Called other = compared([](Plan& ran) { ran.roles[0].recompute = Recompute::full; });
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.out, HasSubstr("a run of another plan"));
  const Called full = compared([](Plan& ran) { set_reshard_mode(ran, ReshardMode::full); });
  EXPECT_EQ(full.code, 65);
  EXPECT_THAT(full.out, HasSubstr("reshard full"));
  EXPECT_THAT(full.out, HasSubstr("reshard minimal"));
}

/// The run's configuration halves what is foreseen: the full bytes are then a failed check.
TEST_F(EditedPlan, ComparesBytesWithThoseOfTheRunsWireType) {
  const fs::path run = folder_ / "wired";
  fs::create_directories(run);
  const std::string file = edited("wire.json", [](Plan& each) {
    for (RolePlan& role : each.roles) role.dtypes.wire = DType::fp32;
    each.reshard[0].bytes_received = Bytes{1 << 20};
  });
  Problems problems;
  const std::int64_t planned = read_plan(file, problems).value().reshard.at(0).bytes_received;
  const auto compared = [&](std::int64_t bytes, const char* config) {
    std::ofstream(run / "metrics.jsonl")
        << "{\"step\": 1, \"data\": {\"timing_s/step\": 2.0, \"reshard/bytes\": " << bytes
        << ", \"reshard/spared_bytes\": " << planned - bytes << "}}\n";
    std::ofstream(run / "run.yaml") << config;
    return call("compare " + file + " " + run.string());
  };
  const std::string half = std::to_string(planned / 2) + " bytes predicted, ";
  EXPECT_EQ(compared(planned, "version: 1\n").code, 0);
  EXPECT_EQ(compared(planned / 2, "version: 1\n").code, 1);
  const Called wire = compared(planned / 2, "reshard: {wire: fp16}\n");
  EXPECT_EQ(wire.code, 0);
  EXPECT_THAT(wire.out, HasSubstr(half + std::to_string(planned / 2) + " measured: equal"));
  EXPECT_EQ(compared(planned, "reshard: {wire: fp16}\n").code, 1);
}

}  // namespace
}  // namespace tessera
