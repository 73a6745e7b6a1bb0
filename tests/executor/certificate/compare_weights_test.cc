// Folders that torch and safetensors wrote, compared with what torch says of their tensors.
#include "executor/certificate/compare_weights.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

using nlohmann::json;

/// What is compared of two folders, as JSON has it.
json compared(const std::filesystem::path& folder, const std::string& as) {
  Problems problems;
  const auto a = open_model_weights(folder / "a", problems);
  const auto b = open_model_weights(folder / "b", problems);
  if (!a || !b) {
    ADD_FAILURE() << folder << ": " << to_string(problems.at(0));
    return {};
  }
  return json::parse(to_json(compare_weights(*a, *b, as.empty() ? std::nullopt : dtype_from(as))));
}

TEST(CompareWeights, FindsWhatTorchFindsInEveryPairOfFolders) {
  const std::string python = python_with("safetensors");
  if (python.empty() || python_with("transformers").empty()) GTEST_SKIP() << "no venv with torch";
  const TemporaryFolder temporary;
  ASSERT_EQ(run_python(python, TESSERA_SOURCE_DIR "/tests/executor/certificate/weights_oracle.py " +
                                   temporary.path.string()),
            0);
  const json cases = json::parse(std::ifstream(temporary.path / "cases.json"));
  ASSERT_GT(cases.size(), 15U);
  std::size_t equal = 0;
  for (const json& each : cases) {
    const std::string name = each.at("name");
    const json found = compared(temporary.path / name, each.at("as"));
    EXPECT_EQ(found.at("differences"), each.at("differences")) << name;
    EXPECT_EQ(found.at("equal"), each.at("differences").empty()) << name;
    equal += each.at("differences").empty() ? 1 : 0;
  }
  EXPECT_GE(equal, 5U);
  EXPECT_LE(equal, cases.size() - 10);
}

TEST(CompareWeights, SaysForPeopleWhichBytesDiffer) {
  const WeightComparison none{
      .a = "a", .b = "b", .tensors = 2, .bytes = 4'000'000'000, .differences = {}};
  EXPECT_EQ(to_text(none), "equal: 2 tensors, 4 GB\n");
  WeightComparison some = none;
  some.differences = {
      {.name = "x.weight", .a = {}, .b = {}, .bytes = {6, 2}, .elements = 1, .tensor_bytes = 64},
      {.name = "y.weight", .fault = TensorFault::shape, .a = "[2]", .b = "[3]", .bytes = {}},
      {.name = "z.weight", .fault = TensorFault::only_in_b, .a = {}, .b = {}, .bytes = {}}};
  EXPECT_EQ(to_text(some),
            "x.weight: 1 element differs, bytes 6 to 7 of 64\n"
            "y.weight: [2] in A, [3] in B\n"
            "z.weight: only in B\n"
            "3 of 3 tensors differ\n");
}

}  // namespace
}  // namespace tessera
