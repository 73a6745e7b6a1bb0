// Lengths from a run's printed figures, against draws of a known log-normal.
#include "cost_models/fit/length_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cost_models/lengths.h"

namespace tessera {
namespace {

/// Figures as a run averages them over steps, counted over single draws.
LengthFigures counted(const LengthSpec& lengths, int sequences, int steps) {
  const double variance = std::log1p(lengths.cv * lengths.cv);
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> draw(std::log(lengths.mean) - variance / 2,
                                           std::sqrt(variance));
  const auto limit = static_cast<double>(lengths.max);
  LengthFigures figures{
      .least = 0, .most = 0, .clipped = 0, .sequences = static_cast<double>(sequences)};
  for (int step = 0; step < steps; ++step) {
    double sum = 0, least = limit, most = 0;
    int clipped = 0;
    for (int i = 0; i < sequences; ++i) {
      const double length = std::min(limit, draw(random));
      sum += length;
      least = std::min(least, length);
      most = std::max(most, length);
      clipped += length >= limit ? 1 : 0;
    }
    figures.mean += sum / sequences / steps;
    *figures.least += least / steps;
    *figures.most += most / steps;
    *figures.clipped += static_cast<double>(clipped) / sequences / steps;
  }
  return figures;
}

TEST(LengthFit, FindsMeanAndSpreadWhereTheLimitEndsMany) {
  for (const double cv : {0.3, 0.6, 1.0}) {
    const LengthSpec truth{.mean = 800, .cv = cv, .max = 1024};
    const LengthSpec found = fit_lengths(counted(truth, 512, 40), {0, 0, 1024});
    EXPECT_NEAR(found.cv / cv, 1, 0.05) << cv;
    EXPECT_NEAR(found.mean / truth.mean, 1, 0.05) << cv;
    EXPECT_EQ(found.max, 1024);
  }
}

TEST(LengthFit, FindsThemFromTheLongestWhereTheLimitIsFar) {
  for (const double cv : {0.2, 0.5, 0.9}) {
    const LengthSpec truth{.mean = 500, .cv = cv, .max = 65536};
    const LengthSpec found = fit_lengths(counted(truth, 512, 40), {0, 0, truth.max});
    EXPECT_NEAR(found.cv / cv, 1, 0.08) << cv;
    EXPECT_NEAR(mean_length(found) / mean_length(truth), 1, 0.02) << cv;
  }
}

TEST(LengthFit, EqualLengthsHaveNoSpread) {
  const LengthSpec planned{400, 0.7, 512};
  EXPECT_EQ(fit_lengths({512, 512, 512, 1, 64}, planned), (LengthSpec{512, 0, 512}));
  EXPECT_EQ(fit_lengths({300, 300, 300, 0, 64}, planned), (LengthSpec{300, 0, 512}));
}

/// A log with the mean alone says nothing of the spread.
TEST(LengthFit, WhatIsNotLoggedStaysAsPlanned) {
  const LengthFigures mean_alone{.mean = 300, .sequences = 64};
  const LengthSpec found = fit_lengths(mean_alone, {.mean = 400, .cv = 0.7, .max = 512});
  EXPECT_EQ(found.cv, 0.7);
  EXPECT_NEAR(mean_length(found), 300, 0.5);
  EXPECT_EQ(fit_lengths(mean_alone, {.mean = 400, .cv = 0, .max = 512}), (LengthSpec{300, 0, 512}));
  const LengthSpec longest =
      fit_lengths({.mean = 300, .most = 500, .sequences = 64}, {.mean = 400, .cv = 0, .max = 512});
  EXPECT_GT(longest.cv, 0.1);
}

/// A log-normal's mean is within the limit where half of it or more is not: what is fitted is what
/// a workload may say, with the measured mean (counted over draws).
TEST(LengthFit, NearlyAllAtTheLimitIsStillAWorkload) {
  for (const double mean : {3.4, 3.9, 3.99}) {
    for (const double clipped : {0.3, 0.75, 0.97}) {
      const LengthSpec found = fit_lengths(
          {.mean = mean, .least = 1, .most = 4, .clipped = clipped, .sequences = 64}, {3, 0.5, 4});
      EXPECT_LE(found.mean, 4) << mean << " " << clipped;
      EXPECT_EQ(found.max, 4);
      EXPECT_NEAR(counted(found, 512, 400).mean / mean, 1, 0.01) << mean << " " << clipped;
    }
    const LengthSpec planned = fit_lengths({.mean = mean, .sequences = 64}, {3, 4, 4});
    EXPECT_LE(planned.mean, 4) << mean;
    EXPECT_NEAR(counted(planned, 512, 400).mean / mean, 1, 0.01) << mean;
  }
}

}  // namespace
}  // namespace tessera
