// Constants learned from phases of a known machine: what was put in must come out.
#include "cost_models/fit/learned_constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr double kNoise = 0.01;

Calibration h200() {
  Problems problems;
  return find_calibration("h200", problems).value();
}

/// Six runs of a trainer in closed form: each phase depends on its constants in other parts. No
/// phase depends on grouped_rate, host_bytes_per_s or all_to_all.
std::vector<double> phases_of(const Calibration& machine) {
  static const double whole = h200().prefill.ratio.front();
  std::vector<double> phases;
  for (int run = 1; run <= 6; ++run) {
    const double products = 1e15 * run / machine.matmul_flops.value;
    const double host = (7 - run) * 2e5 * machine.dispatch_s.value;
    const double attention = 0.3 * run * run * machine.prefill.ratio.front() / whole;
    phases.push_back(products + attention);                                           // scoring
    phases.push_back(3 * products * machine.sustained.value + 3 * attention + host);  // update
    phases.push_back(run * 8e12 / machine.memory_bandwidth.value +
                     3000 * machine.decode_step_s.value);  // generation
  }
  return phases;
}

struct Drawn {
  Calibration truth;
  std::vector<MeasuredQuantity> measured;
};

Drawn draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Drawn drawn{.truth = h200()};
  drawn.truth.matmul_flops.value *= std::exp(0.2 * normal(random));
  drawn.truth.memory_bandwidth.value *= std::exp(0.2 * normal(random));
  drawn.truth.dispatch_s.value *= std::exp(0.8 * normal(random));
  drawn.truth.decode_step_s.value *= std::exp(0.8 * normal(random));
  drawn.truth.sustained.value *= std::exp(0.1 * normal(random));
  const double ratio = std::exp(0.3 * normal(random));
  for (double& each : drawn.truth.prefill.ratio) each *= ratio;
  for (const double value : phases_of(drawn.truth)) {
    drawn.measured.push_back({"run", "phase", value * std::exp(kNoise * normal(random)), 0});
  }
  return drawn;
}

LearnedConstants learned_from(const std::vector<MeasuredQuantity>& measured,
                              const LearnOptions& options = {.model_error = kNoise}) {
  return learn_constants(h200(), measured, phases_of, "test", options);
}

const LearnedConstant& named(const LearnedConstants& learned, const std::string& name) {
  return *std::find_if(learned.constants.begin(), learned.constants.end(),
                       [&](const auto& each) { return each.name == name; });
}

/// The deviations of what was learned from what was put in are as large as the error bars say.
TEST(LearnedConstants, RecoverTheMachineWithinTheirErrorBars) {
  const std::vector<std::pair<std::string, Constant Calibration::*>> varied = {
      {"matmul_flop_per_s", &Calibration::matmul_flops},
      {"memory_bytes_per_s", &Calibration::memory_bandwidth},
      {"dispatch_s", &Calibration::dispatch_s},
      {"decode_step_s", &Calibration::decode_step_s},
      {"sustained", &Calibration::sustained}};
  double squares = 0;
  int count = 0, far = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Drawn drawn = draw(seed);
    const LearnedConstants learned = learned_from(drawn.measured);
    EXPECT_LT(learned.spread_after, 2) << seed;
    for (const auto& [name, member] : varied) {
      const LearnedConstant& each = named(learned, name);
      if (each.fate != ConstantFate::moved) continue;
      const double truth = (drawn.truth.*member).value;
      EXPECT_EQ(each.after, (learned.calibration.*member).value);
      const double z = std::log(each.after / truth) / each.error;
      squares += z * z;
      far += std::abs(z) > 3 ? 1 : 0;
      ++count;
    }
  }
  std::printf("%d constants learned of 300, rms of their deviations %.2f error bars, %d beyond 3\n",
              count, std::sqrt(squares / count), far);
  EXPECT_GT(count, 200);
  EXPECT_LE(far, count / 50);
  EXPECT_LT(std::sqrt(squares / count), 1.5);
}

TEST(LearnedConstants, ConstantsWithoutEffectAreLeftAndSaidSo) {
  const LearnedConstants learned = learned_from(draw(1).measured);
  for (const char* name : {"grouped_rate", "host_bytes_per_s", "all_to_all/8x1"}) {
    EXPECT_EQ(named(learned, name).fate, ConstantFate::without_effect) << name;
    EXPECT_EQ(named(learned, name).after, named(learned, name).before) << name;
  }
  EXPECT_EQ(learned.calibration.grouped_rate, h200().grouped_rate);
}

TEST(LearnedConstants, AMachineAsItWasThoughtStaysAsItIs) {
  std::vector<MeasuredQuantity> measured;
  for (const double value : phases_of(h200())) measured.push_back({"run", "phase", value, 0});
  const LearnedConstants learned = learned_from(measured);
  EXPECT_EQ(learned.calibration, h200());
  EXPECT_EQ(named(learned, "matmul_flop_per_s").fate, ConstantFate::agrees);
}

/// Two constants that every phase holds in one product: together they are known, alone neither.
TEST(LearnedConstants, WhatPhasesDoNotTellApartMovesOnce) {
  const Predictor product = [](const Calibration& machine) {
    return std::vector<double>(4, 1e15 * machine.sustained.value / machine.matmul_flops.value);
  };
  std::vector<MeasuredQuantity> measured;
  for (const double value : product(h200())) measured.push_back({"run", "phase", value * 1.4, 0});
  const LearnedConstants learned = learn_constants(h200(), measured, product, "test", {});
  EXPECT_NEAR(product(learned.calibration)[0] / measured[0].value, 1, 0.02);
  const ConstantFate flops = named(learned, "matmul_flop_per_s").fate;
  const ConstantFate sustained = named(learned, "sustained").fate;
  EXPECT_TRUE((flops == ConstantFate::moved && sustained == ConstantFate::not_told_apart) ||
              (flops == ConstantFate::not_told_apart && sustained == ConstantFate::moved));
}

/// A phase of which the constant is a hundredth part, measured to 3 %, tells nothing of it.
TEST(LearnedConstants, WhatIsDrownedInNoiseIsLeft) {
  const Predictor mostly_other = [](const Calibration& machine) {
    return std::vector<double>{1 + 0.01 * machine.dispatch_s.value / 5e-6};
  };
  const std::vector<MeasuredQuantity> measured = {{"run", "phase", 1.05, 0.03}};
  const LearnedConstants learned = learn_constants(h200(), measured, mostly_other, "test", {});
  EXPECT_EQ(named(learned, "dispatch_s").fate, ConstantFate::open);
  EXPECT_EQ(learned.calibration, h200());
}

TEST(LearnedConstants, MovedOnesAreMeasuredAndTheirOldCovarianceIsGone) {
  const Drawn drawn = draw(3);
  Calibration base = h200();
  base.covariances = {{{"matmul_flop_per_s", "memory_bytes_per_s"}, {1e-4, 0, 0, 1e-4}}};
  const LearnedConstants learned =
      learn_constants(base, drawn.measured, phases_of, "two runs", {.model_error = kNoise});
  EXPECT_TRUE(learned.calibration.matmul_flops.measured);
  EXPECT_EQ(learned.calibration.matmul_flops.origin, "two runs");
  for (const FitCovariance& fit : learned.calibration.covariances) {
    EXPECT_EQ(fit.relative.size(), fit.of.size() * fit.of.size());
    EXPECT_GT(fit.of.size(), 2U);  // the block of all that moved
  }
  const std::string text = to_json(learned.calibration);
  Problems problems;
  const auto again = parse_calibration(text, "learned", problems);
  ASSERT_TRUE(again.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  EXPECT_EQ(*again, learned.calibration);
}

TEST(LearnedConstants, TheHandoverIsWrittenWhereItIsStated) {
  Calibration calibration = h200();
  EXPECT_EQ(to_json(calibration).find("handover"), std::string::npos);
  EXPECT_EQ(calibration.handover.value, 1);
  calibration.handover = {2.5, 0.1, true, "test"};
  Problems problems;
  EXPECT_EQ(parse_calibration(to_json(calibration), "file", problems), calibration);
  const auto names = constant_names(calibration, true);
  EXPECT_NE(std::find(names.begin(), names.end(), "handover"), names.end());
}

}  // namespace
}  // namespace tessera
