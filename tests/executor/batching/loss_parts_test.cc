#include "executor/batching/loss_parts.h"

#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"

using namespace std::string_literals;

namespace tessera {
namespace {

LossGradient part(double value, double weight, double clip) {
  return {.value = value,
          .weight = weight,
          .sums = {{"pg_loss", value}},
          .means = {{"clipfrac", clip}}};
}

TEST(LossParts, AddUpAndAverageAsOneBatchWould) {
  // Two replicas; the first has two micro-batches. Means weigh 1 : 3 : 4.
  LossParts first, second;
  first.add(part(0.5, 1, 1.0));
  first.add(part(1.5, 3, 0.5));
  second.add(part(4.0, 4, 0.25));
  first.add(second);
  const UpdateResult result = mean_over_replicas(first, 2);
  EXPECT_DOUBLE_EQ(result.loss, 3.0);
  EXPECT_DOUBLE_EQ(result.metrics.at("pg_loss"), 3.0);
  EXPECT_DOUBLE_EQ(result.metrics.at("clipfrac"), (1.0 + 1.5 + 1.0) / 8);
}

TEST(LossParts, SurviveTheWire) {
  LossParts parts;
  parts.add(part(0.1, 7, 1.0 / 3));
  parts.sums["a name with\0 a zero"s] = -0.0;
  EXPECT_EQ(loss_parts_from(to_bytes(parts)), parts);
  EXPECT_EQ(loss_parts_from(to_bytes(LossParts{})), LossParts{});
}

TEST(LossParts, RefuseATruncatedMessage) {
  const std::string bytes = to_bytes([] {
    LossParts parts;
    parts.add(part(1, 2, 3));
    return parts;
  }());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(loss_parts_from(std::string_view(bytes).substr(0, length)), Error);
}

TEST(LossParts, WithoutWeightHaveZeroMeans) {
  LossParts parts;
  parts.add(part(1, 0, 0.7));
  EXPECT_EQ(mean_over_replicas(parts, 1).metrics.at("clipfrac"), 0.0);
}

}  // namespace
}  // namespace tessera
