#include "executor/preference/preference_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

const std::vector<float> kScores{1.5F, 0.25F, -2.0F, 3.0F, 0.5F, 0.5F};
const std::vector<double> kMargins{0, 0.5, 1};

TEST(PreferenceLoss, IsTheFormula) {
  const PreferenceLoss loss = preference_loss(kScores, kMargins, 0.1);
  double expected = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double chosen = kScores[2 * i], rejected = kScores[2 * i + 1];
    expected -= std::log(1 / (1 + std::exp(-(chosen - rejected - kMargins[i]))));
    expected += 0.1 * std::pow(chosen + rejected, 2);
  }
  EXPECT_NEAR(loss.value, expected / 3, 1e-12);
  EXPECT_NEAR(loss.accuracy, 1.0 / 3, 1e-12);  // equal scores are no success
  EXPECT_NEAR(loss.margin, (1.25 - 5) / 3, 1e-12);
}

TEST(PreferenceLoss, HasTheGradientOfItsDifferences) {
  const PreferenceLoss loss = preference_loss(kScores, kMargins, 0.1);
  for (std::size_t i = 0; i < kScores.size(); ++i) {
    constexpr float kStep = 1.0F / 1024;
    std::vector<float> more = kScores, less = kScores;
    more[i] += kStep, less[i] -= kStep;
    const double slope =
        (preference_loss(more, kMargins, 0.1).value - preference_loss(less, kMargins, 0.1).value) /
        (2 * static_cast<double>(kStep));
    EXPECT_NEAR(loss.gradient[i], slope, 1e-6) << i;
  }
}

TEST(PreferenceLoss, DoesNotOverflow) {
  const PreferenceLoss loss =
      preference_loss(std::vector<float>{-2000, 2000, 2000, -2000}, std::vector<double>{0, 0}, 0);
  EXPECT_DOUBLE_EQ(loss.value, 2000);
  EXPECT_EQ(loss.gradient, (std::vector<double>{-0.5, 0.5, 0, 0}));
}

TEST(PreferenceLoss, GivesEachSequenceItsGradientInAnyMicroBatch) {
  const PreferenceLoss loss = preference_loss(kScores, kMargins, 0);
  const std::vector<int> sequences{4, 1};
  const std::vector<double> scores{0.5, 0.25};
  const LossGradient part = loss.function(/*replicas=*/2)(sequences, scores, {});
  EXPECT_EQ(part.score_gradient, (std::vector<double>{2 * loss.gradient[4], 2 * loss.gradient[1]}));
}

}  // namespace
}  // namespace tessera
