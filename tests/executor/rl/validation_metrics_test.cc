// Numbers of validations beside those that verl's own functions make of the same samples
// (scripts/make_validation_vectors.py).
#include "executor/rl/validation_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace tessera {
namespace {

using Json = nlohmann::json;

std::vector<ValidationSample> samples_of(const Json& given) {
  std::vector<ValidationSample> samples;
  for (const Json& one : given) {
    ValidationSample sample{.data_source = one.at("data_source"),
                            .uid = one.at("uid"),
                            .values = one.at("values"),
                            .answer = {}};
    if (!one.at("answer").is_null()) sample.answer = one.at("answer").get<std::string>();
    samples.push_back(std::move(sample));
  }
  return samples;
}

TEST(ValidationMetrics, AreVerlsNamesAndValues) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rl/verl_validation.json");
  ASSERT_TRUE(in.good());
  const Json vectors = Json::parse(in);
  std::size_t numbers = 0, majorities = 0;
  for (const Json& one : vectors.at("cases")) {
    const Metrics metrics = validation_metrics(samples_of(one.at("samples")));
    const Json& expected = one.at("metrics");
    EXPECT_EQ(metrics.size(), expected.size());
    for (const auto& [name, value] : expected.items()) {
      ASSERT_TRUE(metrics.contains(name)) << name;
      EXPECT_NEAR(metrics.at(name), value.get<double>(), 1e-12) << name;
      majorities += name.find("/maj@") != std::string::npos ? 1 : 0;
      ++numbers;
    }
  }
  EXPECT_GT(numbers, 3000u);
  EXPECT_GT(majorities, 200u);
}

TEST(ValidationMetrics, TheLineHasTheMainNumbers) {
  EXPECT_EQ(validation_line(20, {{"val-core/s/reward/mean@2", 0.25},
                                 {"val-core/s/reward/best@2/mean", 0.5},
                                 {"val-core/s/reward/best@2/std", 0.1},
                                 {"val-aux/s/reward/std@2", 0.1}}),
            "[Validation] step 20: val-core/s/reward/best@2/mean 0.5, val-core/s/reward/mean@2 "
            "0.25");
}

}  // namespace
}  // namespace tessera
