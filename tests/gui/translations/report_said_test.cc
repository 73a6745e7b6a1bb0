// SPDX-License-Identifier: GPL-3.0-or-later
// The planner's reports in Chinese: of plans of many kinds, of questions that nothing answers, of
// what a run taught, of advice and of rules. Each line is held to its English: no prose stays.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <set>

#include "cost_models/fit/derived_calibration.h"
#include "gui/translations/language.h"
#include "gui/translations/said.h"
#include "planner/advice/run_advice.h"
#include "planner/engines/engine.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/report.h"
#include "simulator/learn/learned_report.h"
#include "simulator/rules/rules.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/translations/stays_english.h"

namespace tessera::gui {
namespace {

class ReportSaid : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
    speak("zh_CN");
  }
  void TearDown() override { speak("en"); }

  static void hold(const std::string& report) {
    const QStringList english = QString::fromStdString(report).split('\n');
    const QStringList chinese = saidLines(report).split('\n');
    ASSERT_EQ(english.size(), chinese.size());
    for (qsizetype i = 0; i < english.size(); ++i) {
      EXPECT_EQ(english_word(chinese[i]), "")
          << chinese[i].toStdString() << "\n<- " << english[i].toStdString();
    }
    speak("en");
    EXPECT_EQ(saidLines(report).toStdString(), report);
    speak("zh_CN");
  }
  /// The plan, or why there is none.
  static void hold(const PlanQuery& query) {
    const PlanAnswer found = answer(query);
    if (const auto* plan = std::get_if<SharedPlan>(&found.result)) {
      const auto calibration = calibration_of(**plan);
      hold(describe(**plan, calibration ? &*calibration : nullptr));
      hold(describe(**plan));
    } else if (const auto* none = std::get_if<Infeasible>(&found.result)) {
      hold(describe(*none));
    } else {
      for (const Problem& problem : std::get<Problems>(found.result)) {
        EXPECT_EQ(english_word(said(problem.found)), "") << problem.found;
        EXPECT_EQ(english_word(said(problem.expected)), "") << problem.expected;
        EXPECT_EQ(english_word(said(problem.hint)), "") << problem.hint;
      }
    }
  }
};

TEST_F(ReportSaid, OfPlansOfManyKinds) {
  hold(describe(digits_plan()));
  const auto calibration = calibration_of(split_plan());
  hold(describe(split_plan(), &*calibration));
  Plan edited = free_plan();
  edited.certificate.objective = "";
  hold(describe(edited));
  for (const char* cluster : {"h100-8", "h800-h20-64"}) {
    for (const char* model : {"qwen2.5-7b"}) {
      for (const char* workload : {"grpo-7b-1k", "ppo-7b-1k"}) {
        hold(PlanQuery{.model = model, .cluster = cluster, .workload = workload, .nodes = 0});
      }
    }
  }
  for (const char* objective : {"tokens_per_s_per_gpu", "cost", "gpus", "gpu_hours"}) {
    hold(PlanQuery{.model = "qwen2.5-0.5b",
                   .cluster = "h100-8",
                   .workload = "grpo-7b-1k",
                   .objective = objective});
  }
}

TEST_F(ReportSaid, OfEveryEngine) {
  for (const std::string& engine : engine_names()) {
    for (const char* model : {"qwen2.5-0.5b", "deepseek-v2-lite"}) {
      for (const char* fixed : {"actor.cp=2", "actor.tp=16", "actor.ep=4", "placement=standalone",
                                "actor.vpp=3", "rollout.tp=3"}) {
        PlanQuery query{.model = model, .cluster = "h100-8", .workload = "grpo-7b-1k"};
        query.engine = engine;
        if (*fixed != '\0') query.fixed = {fixed};
        hold(query);
      }
    }
  }
}

TEST_F(ReportSaid, OfQuestionsThatNothingAnswers) {
  QTemporaryDir folder;
  hold(infeasible_query(folder.path().toStdString()));
  const PlanQuery query{.model = "qwen2.5-32b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
  hold(query);
  for (const char* words :
       {"actor.tp=1 actor.pp=1", "rollout.max_sequences=4096 rollout.tp=1", "actor.dp=7",
        "actor.gpus=5", "actor.tp=8 actor.pp=8", "actor.zero=0 actor.dp=8", "actor.vpp=9",
        "actor.tp=2 critic.tp=4 placement=actor+critic+reference | rollout",
        "actor.gpus=4 actor.tp=3"}) {
    PlanQuery asked = query;
    for (const QString& word : QString(words).split(' ')) asked.fixed.push_back(word.toStdString());
    hold(asked);
    asked.model = "qwen2.5-0.5b";
    hold(asked);
  }
}

TEST_F(ReportSaid, OfRulesThatWereJudged) {
  Problems problems;
  const auto profile = read_rules("published-practice", problems);
  ASSERT_TRUE(profile);
  std::vector<JudgedRule> judged;
  for (const Rule& rule : profile->rules) {
    for (const RuleOutcome outcome :
         {RuleOutcome::holds, RuleOutcome::violated, RuleOutcome::unreachable, RuleOutcome::unknown,
          RuleOutcome::off}) {
      for (const bool fails : {false, true}) {
        judged.push_back({&rule,
                          {.outcome = outcome,
                           .value = 1,
                           .limit = 2,
                           .predicted = 3,
                           .bound = fails ? std::optional(4.0) : std::nullopt,
                           .would_fail = fails}});
      }
    }
  }
  hold(describe(*profile, judged));
}

TEST_F(ReportSaid, OfAdvice) {
  RunAdvice advice{.measured_s = Seconds{3}, .step_s = Seconds{2.5}};
  hold(to_text(advice, "plan.json", "calibration.json"));
  for (const char* what : {"actor.tp 2 -> 4, prefill batches of 2048 -> 4096 tokens",
                           "prefill batches of 2048 -> 4096 tokens", "actor.tp 2 -> 4"}) {
    AdvisedChange change{.settings = {"actor.tp=4"}, .step_s = Seconds{2}};
    change.what = what;
    advice.changes.push_back(change);
  }
  hold(to_text(advice, "plan.json", "calibration.json"));
  EXPECT_EQ(said("actor.tokens (free) -> 4096"), "actor.tokens （未固定） -> 4096");
  EXPECT_EQ(said("actor.tokens (not set) -> 4096"), "actor.tokens （未设置） -> 4096");
}

TEST_F(ReportSaid, ColumnsStandWhereTheyStoodOrTwoBlanksFurther) {
  EXPECT_EQ(saidLines("  role       ranks        layout"), "  角色       rank         布局");
  EXPECT_EQ(saidLines("role  ranks"), "角色  rank");
  EXPECT_EQ(saidLines("no row  x"), "没有行  x");
  EXPECT_EQ(saidLines("\n  actor  1\n"), "\n  actor  1\n");
}

}  // namespace
}  // namespace tessera::gui
