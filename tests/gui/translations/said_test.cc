// SPDX-License-Identifier: GPL-3.0-or-later
// What the planner, the simulator and the rules say, in Chinese: all of what they name, and
// sentences as they make them.
#include "gui/translations/said.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <map>
#include <set>

#include "cost_models/documents/preset.h"
#include "cost_models/memory.h"
#include "gui/translations/language.h"
#include "planner/explain/memory_fit.h"
#include "planner/interop/export.h"
#include "planner/plan/plan.h"
#include "planner/space/left_open.h"
#include "simulator/learn/gap_causes.h"
#include "simulator/reshard/methods.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/rules/rules.h"
#include "simulator/tasks/task_graph.h"
#include "simulator/timeline/comparison.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

class Said : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
    speak("zh_CN");
  }
  void TearDown() override { speak("en"); }

  static void expectChinese(std::string_view english) {
    const QString text = said(english);
    EXPECT_TRUE(std::any_of(text.begin(), text.end(), [](QChar c) {
      return c.script() == QChar::Script_Han;
    })) << english;
    static const QRegularExpression place("%\\d");
    EXPECT_FALSE(place.match(text).hasMatch()) << text.toStdString();
  }
};

TEST_F(Said, EverythingThatIsNamed) {
  for (const auto& [name, bytes] : memory_classes({})) expectChinese(name);
  for (const ReshardMethod method : kReshardMethods) {
    expectChinese(meaning_of(method));
    expectChinese(overlap_of(method));
  }
  for (const RuleOutcome outcome :
       {RuleOutcome::holds, RuleOutcome::violated, RuleOutcome::unreachable, RuleOutcome::unknown,
        RuleOutcome::off}) {
    expectChinese(name_of(outcome));
  }
  for (const RuleEvidence evidence :
       {RuleEvidence::confirmed, RuleEvidence::conflicting, RuleEvidence::refuted}) {
    expectChinese(name_of(evidence));
  }
  for (const Exchange exchange : {Exchange::gradients, Exchange::parameters, Exchange::shards,
                                  Exchange::stages, Exchange::weights, Exchange::host}) {
    expectChinese(name_of(exchange));
  }
  for (const Stream stream :
       {Stream::phases, Stream::compute, Stream::communication, Stream::copy}) {
    expectChinese(name_of(stream));
  }
  for (const ExportTarget& target : every_export_target()) expectChinese(target.meaning);
  expectChinese("colocated");
  expectChinese(kLeftOpen);
}

TEST_F(Said, TheAdviceOfEveryRuleThatIsShipped) {
  for (const std::string& name : preset_names("rules", ".json")) {
    Problems problems;
    const auto profile = read_rules(name, problems);
    ASSERT_TRUE(profile.has_value()) << name;
    for (const Rule& rule : profile->rules) expectChinese(rule.advice);
  }
}

TEST_F(Said, WhyNothingFitsAndWhatWould) {
  const PlanQuery query{.model = "qwen2.5-14b", .cluster = "h100-8", .workload = "grpo-7b-1k"};
  for (const char* fixed :
       {"actor.tp=16", "actor.tp=3", "actor.pp=100", "actor.dp=7", "rollout.tp=64", "actor.vpp=64",
        "rollout.max_sequences=1024 rollout.tp=1"}) {
    PlanQuery asked = query;
    for (const QString& word : QString(fixed).split(' ')) asked.fixed.push_back(word.toStdString());
    const PlanAnswer found = answer(asked);
    const auto* none = std::get_if<Infeasible>(&found.result);
    if (none == nullptr) continue;  // such a plan there is
    for (const std::string& reason : none->reasons) expectChinese(reason);
    if (!none->nearest_fix.empty()) expectChinese(none->nearest_fix);
  }
}

TEST_F(Said, WhyARanksFileIsNotRead) {
  expectChinese("5 bytes instead of 208");
  expectChinese("the file of rank 3");
  expectChinese("not what a rank of this version writes");
  expectChinese("not a regular file");
}

TEST_F(Said, WhyTimesAreNotJudged) {
  Plan plan;
  plan.cluster.device.name = "H100-SXM-80GB";
  for (const RoughTimes rough : {RoughTimes::shared, RoughTimes::other_device, RoughTimes::all}) {
    expectChinese(why_times_are_not_judged(rough, plan));
  }
}

TEST_F(Said, WhyAPhaseTookAnotherTime) {
  const GapFacts slower{
      .what = "gen", .predicted_s = 2, .measured_s = 3, .constant = "hbm", .constant_s = 0.01};
  const auto with = [&](const auto& change) {
    GapFacts facts = slower;
    change(facts);
    expectChinese(cause_of(facts));
  };
  with([](GapFacts&) {});
  with([](GapFacts& facts) { facts.measured_s = 1; });
  with([](GapFacts& facts) { facts.outside = true; });
  with([](GapFacts& facts) {
    facts.outside = true;
    facts.untimed = "adv, reward";
  });
  with([](GapFacts& facts) { facts.waited = true; });
  with([](GapFacts& facts) { facts.predicted_s = 0; });
  with([](GapFacts& facts) { facts.measured_deviation_s = 1; });
  with([](GapFacts& facts) { facts.predicted_deviation_s = 1; });
  with([](GapFacts& facts) {
    facts.phase = Phase::reshard;
    facts.handover_s = 1;
  });
  with([](GapFacts& facts) {
    facts.kind = CallKind::train;
    facts.reserved_part = 0.97;
  });
  with([](GapFacts& facts) { facts.communication_s = 1; });
  for (const double prompt : {0.0, 900.0}) {
    for (const double response : {0.0, 700.0, 1000.0}) {
      with([&](GapFacts& facts) {
        facts.at_measured_lengths_s = 2.9;
        facts.planned_prompt = 1000;
        facts.measured_prompt = prompt;
        facts.planned_tokens = 1000;
        facts.measured_tokens = response;
      });
    }
  }
}

// Of every target that can run such a plan; four English words in a row are prose.
TEST_F(Said, WhatAnExportedJobAsks) {
  static const QRegularExpression prose("[A-Za-z]{3,} [a-z]{3,} [a-z]{3,} [a-z]{3,}");
  static const QRegularExpression command("`[^`]*`");
  std::set<std::string> asked;
  std::map<std::string_view, PlanAnswer> found;  // by engine
  for (const ExportTarget& target : every_export_target()) {
    PlanQuery query{.model = "qwen2.5-0.5b", .cluster = "h100-64", .workload = "ppo-7b-1k"};
    query.nodes = 2;
    query.engine = std::string(target.engines.front());
    const auto [known, fresh] = found.try_emplace(target.engines.front());
    if (fresh) known->second = answer(query);
    const auto* plan = std::get_if<SharedPlan>(&known->second.result);
    Problems problems;
    const auto made = plan == nullptr ? std::nullopt : export_plan(**plan, target, {}, problems);
    if (!made) continue;
    for (const std::string& note : made->notes) {
      asked.insert(note.substr(0, 12));
      expectChinese(note);
      const QString text = said(note).remove(command);
      EXPECT_FALSE(prose.match(text).hasMatch()) << text.toStdString();
    }
  }
  EXPECT_GT(asked.size(), 8u);
}

TEST_F(Said, HowSurelyAPlanFitsAndWhatAReshardMoved) {
  expectChinese(fit_text(free_plan(), 0.99999));
  for (const bool at_most : {false, true}) {
    for (const std::int64_t apart : {0, 1, 3}) {
      expectChinese(verdict({.what = "", .at_most = at_most, .steps_apart = apart}));
    }
  }
  EXPECT_EQ(said("use 4 nodes (32 GPUs)"), "使用 4 个节点（32 张 GPU）");
  EXPECT_EQ(said("actor+reference | critic"), "actor+reference | critic");  // names of roles
  EXPECT_EQ(said(""), "");
  speak("en");
  EXPECT_EQ(said("use 4 nodes (32 GPUs)"), "use 4 nodes (32 GPUs)");
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  QCoreApplication application(argc, argv);  // translators are its
  return RUN_ALL_TESTS();
}
