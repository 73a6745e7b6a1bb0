#include "executor/checkpoint/tensor_box.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// A tensor whose element at flat position p is p, stored as int32.
struct Counting {
  std::vector<std::int32_t> values;
  TensorView view;

  explicit Counting(std::vector<std::int64_t> shape) {
    view.name = "t";
    view.dtype = DType::int32;
    view.shape = std::move(shape);
    values.resize(static_cast<std::size_t>(view.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
    view.data = std::as_bytes(std::span(values));
  }
};

/// Brute force: walks every index of the box in memory order.
std::vector<std::int32_t> expected_order(const TensorView& tensor, const Box& box, int outer) {
  std::vector<int> order;
  if (box.rank > 0) order.push_back(outer);
  for (int d = 0; d < box.rank; ++d) {
    if (d != outer) order.push_back(d);
  }
  std::vector<std::int32_t> result;
  std::array<std::int64_t, kMaxTensorRank> index{};
  const auto visit = [&](auto&& self, std::size_t depth) -> void {
    if (depth == order.size()) {
      std::int64_t flat = 0;
      for (int d = 0; d < box.rank; ++d) {
        const auto at = static_cast<std::size_t>(d);
        flat = flat * tensor.shape[at] + index[at];
      }
      result.push_back(static_cast<std::int32_t>(flat));
      return;
    }
    const auto dim = static_cast<std::size_t>(order[depth]);
    for (index[dim] = box.dims[dim].lo; index[dim] < box.dims[dim].hi; ++index[dim]) {
      self(self, depth + 1);
    }
  };
  visit(visit, 0);
  return result;
}

TEST(ReadBox, EqualsIndexingByHandForEveryRankOuterDimAndRandomBox) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::int64_t> shape(random() % (kMaxTensorRank + 1));
    Box box;
    box.rank = static_cast<int>(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      shape[d] = 1 + random() % (shape.size() <= 2 ? 80 : 9);
      const std::int64_t lo = random() % shape[d];
      box.dims[d] = {lo, lo + static_cast<std::int64_t>(random() % (shape[d] - lo + 1))};
    }
    const Counting tensor(shape);
    for (int outer = 0; outer < std::max(box.rank, 1); ++outer) {
      const auto expected = expected_order(tensor.view, box, outer);
      std::vector<std::int32_t> out(expected.size() + 1, -7);
      Problems problems;
      ASSERT_TRUE(read_box(tensor.view, box, outer, out.data(), DType::int32, problems));
      EXPECT_EQ(out.back(), -7) << "wrote past the box";
      out.pop_back();
      ASSERT_EQ(out, expected) << "rank " << box.rank << " outer " << outer;
    }
  }
}

TEST(ReadBox, ARowParallelWeightComesTransposed) {
  const Counting weight({2, 3});  // [out, in] = {0 1 2; 3 4 5}
  Box box{.dims = {Interval{0, 2}, Interval{1, 3}}, .rank = 2};
  std::vector<std::int32_t> out(4);
  Problems problems;
  ASSERT_TRUE(read_box(weight.view, box, 1, out.data(), DType::int32, problems));
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 4, 2, 5}));
}

TEST(ReadBox, RefusesWhatDoesNotConvertOrDoesNotFit) {
  const Counting tensor({2, 3});
  Problems problems;
  float out[6];
  Box box{.dims = {Interval{0, 2}, Interval{0, 3}}, .rank = 2};
  EXPECT_FALSE(read_box(tensor.view, box, 0, out, DType::fp32, problems));
  box.dims[1].hi = 4;
  EXPECT_FALSE(read_box(tensor.view, box, 0, out, DType::int32, problems));
  box.rank = 1;
  EXPECT_FALSE(read_box(tensor.view, box, 0, out, DType::int32, problems));
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].place, "t");
  EXPECT_EQ(problems[1].found, "shape [2, 3]");
}

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

template <class To>
To converted(auto value, DType from, DType to) {
  To out;
  convert_elements(&value, from, &out, to, 1);
  return out;
}

TEST(Convert, EveryHalfAndBrainValueSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const DType type : {DType::fp16, DType::bf16}) {
      const float wide = converted<float>(half, type, DType::fp32);
      const auto back = converted<std::uint16_t>(wide, DType::fp32, type);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(converted<float>(back, type, DType::fp32))) << bits;
      } else {
        ASSERT_EQ(back, half) << name_of(type) << " " << bits;
      }
    }
  }
}

TEST(Convert, HalfMeansWhatIeee754Says) {
  EXPECT_EQ(converted<float>(std::uint16_t{0x3c00}, DType::fp16, DType::fp32), 1.0f);
  EXPECT_EQ(converted<float>(std::uint16_t{0xc000}, DType::fp16, DType::fp32), -2.0f);
  EXPECT_EQ(converted<float>(std::uint16_t{0x0001}, DType::fp16, DType::fp32), 0x1p-24f);
  EXPECT_EQ(converted<float>(std::uint16_t{0x7bff}, DType::fp16, DType::fp32), 65504.0f);
  EXPECT_EQ(converted<float>(std::uint16_t{0x7c00}, DType::fp16, DType::fp32),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(converted<float>(std::uint16_t{0x3f80}, DType::bf16, DType::fp32), 1.0f);
}

TEST(Convert, RoundsToTheNearestAndTiesToEven) {
  const auto half = [](float x) { return converted<std::uint16_t>(x, DType::fp32, DType::fp16); };
  const auto brain = [](float x) { return converted<std::uint16_t>(x, DType::fp32, DType::bf16); };
  EXPECT_EQ(half(1.0f + 0x1p-11f), 0x3c00);      // tie: down to even
  EXPECT_EQ(half(1.0f + 3 * 0x1p-11f), 0x3c02);  // tie: up to even
  EXPECT_EQ(half(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(half(65519.9f), 0x7bff);
  EXPECT_EQ(half(65520.0f), 0x7c00);  // tie with 2^16 goes to infinity
  EXPECT_EQ(half(0x1p-25f), 0x0000);  // half of the least: to even
  EXPECT_EQ(half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(half(-0x1p-14f + 0x1p-25f), 0x8400);  // tie at the border of the subnormals
  EXPECT_EQ(brain(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(brain(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(brain(from_bits(0x7f7fffff)), 0x7f80);  // the largest float overflows
  EXPECT_TRUE(std::isnan(converted<float>(brain(from_bits(0x7f800001)), DType::bf16, DType::fp32)));
}

TEST(Convert, AgreesWithTheNearestHalfForRandomFloats) {
  // Oracle: the two neighbouring halves, chosen by distance in double.
  std::mt19937 random(3);
  for (int trial = 0; trial < 20000; ++trial) {
    const float x = from_bits(random());
    if (!(std::fabs(x) < 65504.0f)) continue;
    const auto bits = converted<std::uint16_t>(x, DType::fp32, DType::fp16);
    const double got = converted<float>(bits, DType::fp16, DType::fp32);
    for (const int step : {-1, 1}) {
      const auto neighbour = static_cast<std::uint16_t>(bits + step);
      const double other = converted<float>(neighbour, DType::fp16, DType::fp32);
      if (std::isfinite(other)) {
        ASSERT_LE(std::fabs(got - x), std::fabs(other - x)) << x;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
