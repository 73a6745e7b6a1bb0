// The digest that tells one model's weights from another's of the same shapes.
#include "executor/checkpoint/base_digest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/model_folder.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

const std::vector<TensorSpec> kTensors = {{"large", DType::fp32, {64, 256}},
                                          {"small", DType::bf16, {16}}};

ParameterTable table_of(const std::vector<std::string>& names) {
  ParameterTable table;
  for (const std::string& name : names) table.rows.push_back({.name = name});
  return table;
}

/// Weights that are `value` everywhere but for one byte of a tensor.
std::string digest_with(std::size_t tensor, std::size_t at, std::byte value,
                        const std::vector<std::string>& names = {"large", "small"}) {
  const TemporaryFolder folder;
  const TensorSource source = [&](std::size_t index, std::span<std::byte> bytes, Problems&) {
    std::ranges::fill(bytes, std::byte{1});
    if (index == tensor) bytes[at] = value;
    return true;
  };
  Problems problems;
  EXPECT_TRUE(write_tensor_file(folder.path / "model.safetensors", kTensors, 0, source, problems));
  const auto digest = base_digest(folder.path, table_of(names), problems);
  EXPECT_TRUE(digest) << Error(problems).what();
  return digest.value_or("");
}

TEST(BaseDigest, TellsOtherWeightsOfTheSameShapes) {
  const std::string same = digest_with(0, 0, std::byte{1});
  EXPECT_EQ(same.size(), 16U);
  EXPECT_EQ(digest_with(1, 3, std::byte{1}), same);
  constexpr std::size_t kBytes = std::size_t{64} * 256 * 4;
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, kBytes - 4096, kBytes - 1}) {
    EXPECT_NE(digest_with(0, at, std::byte{2}), same) << at;
  }
  EXPECT_NE(digest_with(1, 31, std::byte{2}), same);
}

TEST(BaseDigest, IsOfTheModelsTensorsAlone) {
  const std::vector<std::string> one = {"large"};
  EXPECT_EQ(digest_with(1, 0, std::byte{2}, one), digest_with(1, 0, std::byte{3}, one));
  EXPECT_NE(digest_with(1, 0, std::byte{1}, one), digest_with(1, 0, std::byte{1}));
  const TemporaryFolder folder;
  Problems problems;
  EXPECT_FALSE(base_digest(folder.path, table_of(one), problems));
  EXPECT_FALSE(problems.empty());
}

}  // namespace
}  // namespace tessera
