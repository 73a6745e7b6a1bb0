// Verl's golden vectors of every policy loss, value and gradient, padded and as ragged rows.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/executor/rl/golden_options.h"

namespace tessera {
namespace {

using namespace golden;

struct Family {
  const char* file;
  const char* loss;
};
std::string name_of_family(const testing::TestParamInfo<Family>& info) { return info.param.file; }

class GoldenPolicyLoss : public testing::TestWithParam<Family> {};

/// Clip-Cov's recorded draw as numbers: what was dropped comes before all else.
Array draws_of(const Json& in, const Rows& rows) {
  Array draws(static_cast<std::size_t>(rows.entries()), 0.5);
  for (const Json& token : in.value("dropped_tokens", Json::array())) {
    draws[static_cast<std::size_t>(rows.begin[token[0].get<std::size_t>()]) +
          token[1].get<std::size_t>()] = 0;
  }
  return draws;
}

void expect_case(const Loss& got, const Json& item, const Array& gradient,
                 const Tolerance& tolerance, const std::string& form) {
  expect_scalar(got.value, item["expected"]["loss"], tolerance, form + " loss");
  expect_metrics(got.metrics, item["expected"]["metrics"], tolerance, "actor/", form + " metrics");
  expect_array(got.gradient, gradient, tolerance, form + " gradient");
}

TEST_P(GoldenPolicyLoss, EveryCase) {
  for_each_case(GetParam().file, [&](const Json& in, const Json& item, const Tolerance& tolerance) {
    const Rows rows = padded_rows(in["response_mask"]);
    Inputs inputs(in);
    inputs.draws = draws_of(in, rows);
    const PolicyLossOptions options = policy_of(in["options"], GetParam().loss);
    Aggregation aggregation = aggregation_of(in["options"]);
    // verl's geo_mean does not read the counts of the whole batch.
    if (options.loss == &kGeoMean) aggregation.global_batch_size.reset();
    const Array gradient = flatten(item["expected_grad"]["log_prob"]);
    expect_case(policy_loss(inputs.batch(rows), options, aggregation), item, gradient, tolerance,
                "padded");
    const Trimmed ragged = trim(rows);
    const Inputs shorter = inputs.trimmed(ragged);
    expect_case(policy_loss(shorter.batch(ragged.rows), options, aggregation), item,
                ragged.of(gradient), tolerance, "ragged");
  });
}

INSTANTIATE_TEST_SUITE_P(
    Verl, GoldenPolicyLoss,
    testing::Values(Family{"loss_vanilla", "vanilla"}, Family{"loss_gspo", "gspo"},
                    Family{"loss_geo_mean", "geo_mean"}, Family{"loss_clip_cov", "clip_cov"},
                    Family{"loss_kl_cov", "kl_cov"}, Family{"loss_cispo", "cispo"},
                    Family{"loss_sapo", "sapo"}, Family{"loss_dppo_tv", "dppo_tv"},
                    Family{"loss_dppo_kl", "dppo_kl"}, Family{"loss_dro", "dro"},
                    Family{"loss_gpg", "gpg"}, Family{"loss_bypass_mode", "bypass_mode"}),
    name_of_family);

// Micro-batches of a mini-batch of 4 sequences on 2 replicas: the losses add up and ranks average.
TEST(PolicyLosses, GeoMeanAddsUpOverMicroBatches) {
  const Rows whole{.begin = {0, 1, 3, 5, 6}}, first{.begin = {0, 1, 3}}, second{.begin = {0, 2, 3}};
  const Array log_prob{-1, -.5, -.25, -2, -1, -.75}, old{-1.1, -.4, -.3, -1.9, -1.2, -.7};
  const Array advantages{1, -1, -1, .5, .5, 2};
  const auto loss_of = [&](const Rows& rows, std::size_t from, const Aggregation& counts) {
    const auto n = static_cast<std::size_t>(rows.entries());
    return kGeoMean
        .compute({.rows = rows,
                  .log_prob = View(log_prob).subspan(from, n),
                  .old_log_prob = View(old).subspan(from, n),
                  .advantages = View(advantages).subspan(from, n)},
                 {.loss = &kGeoMean}, counts)
        .value;
  };
  const Aggregation shared{.global_batch_size = 4, .dp_size = 2};
  EXPECT_NEAR((loss_of(first, 0, shared) + loss_of(second, 3, shared)) / 2, loss_of(whole, 0, {}),
              1e-12);
}

/// Every file of the folder is read by some test of this program.
class EveryFile : public testing::Environment {
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      if (entry.path().extension() != ".json") continue;
      ++files;
      EXPECT_TRUE(families_read().contains(entry.path().stem())) << entry.path() << " is not read";
    }
    EXPECT_GE(files, 41);
  }
};
const testing::Environment* const kEveryFile =
    testing::AddGlobalTestEnvironment(new EveryFile);  // NOLINT: owned by the framework

}  // namespace
}  // namespace tessera
