// SPDX-License-Identifier: GPL-3.0-or-later
// Metrics and the limits of rules with their units.
#include "gui/units/metric_text.h"

#include <gtest/gtest.h>

#include "gui/models/rule_model.h"

namespace tessera::gui {
namespace {

TEST(MetricText, HasTheUnitThatTheNameTells) {
  EXPECT_EQ(metricText("timing_s/step", 1.096), "1.10 s");
  EXPECT_EQ(metricText("reshard/seconds", 0.05), "50.0 ms");
  EXPECT_EQ(metricText("comm/dp/all_gather_s", 0.005), "5.0 ms");
  EXPECT_EQ(metricText("reshard/bytes", 91 * 1024), "91.0 KiB");
  EXPECT_EQ(metricText("perf/max_memory_allocated_gb", 61.5), "61.5 GiB");
  EXPECT_EQ(metricText("reshard/gbps", 310), "310 GB/s");
  EXPECT_EQ(metricText("perf/throughput", 1023), "1023 tokens/s/GPU");
  EXPECT_EQ(metricText("perf/mfu/actor", 0.17), "17 %");
  EXPECT_EQ(metricText("perf/usable_memory_share", 0.97), "97 %");
  EXPECT_EQ(metricText("actor/ppo_kl", 0.05), "0.05 nats");
  EXPECT_EQ(metricText("reshard/traffic_ratio", 0.2), "0.2");
}

QString limitOf(const RuleModel& model, const QString& rule) {
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.index(row, RuleModel::Name).data().toString() == rule) {
      return model.index(row, RuleModel::Limit).data().toString();
    }
  }
  return "no such rule";
}

TEST(RuleModel, ValuesAndLimitsHaveTheUnitsOfTheirMetrics) {
  RuleModel model;
  EXPECT_EQ(limitOf(model, "step_slower_than_planned"), "at most 1.25 x predicted");
  model.setExpectation({.predicted = {{"timing_s/step", 2}}, .bound = {}});
  EXPECT_EQ(limitOf(model, "step_slower_than_planned"), "at most 2.50 s");
  EXPECT_EQ(limitOf(model, "memory_near_the_end"), "at most 97 %");
  model.setValues({{"timing_s/step", 3}});
  EXPECT_EQ(model.index(0, RuleModel::Value).data().toString(), "3.00 s");
  EXPECT_TRUE(model.banner().contains("timing_s/step is 3.00 s, where at most 2.50 s was expected"))
      << model.banner().toStdString();
  ASSERT_TRUE(model.setProfile("published-practice"));
  EXPECT_EQ(limitOf(model, "reshard_below_50_ms"), "below 50.0 ms");
  EXPECT_EQ(limitOf(model, "mfu_as_published"), "at least 17 %");
  EXPECT_EQ(limitOf(model, "kl_below_0.05"), "below 0.05 nats");
}

}  // namespace
}  // namespace tessera::gui
