// Logits equal transformers' for every tiny family, on one rank and cut in every way.
#include <gmock/gmock.h>

#include <mutex>

#include "cost_models/documents/problem.h"
#include "executor/model/scores.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

struct Case {
  std::string fixture;
  Degrees degrees;
};

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  const Degrees& degrees = info.param.degrees;
  std::string name = info.param.fixture + "_tp" + std::to_string(degrees.tp) + "_pp" +
                     std::to_string(degrees.pp) + "_ep" + std::to_string(degrees.ep);
  if (degrees.etp > 0) name += "_etp" + std::to_string(degrees.etp);
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

class Logits : public ::testing::TestWithParam<Case> {};

/// Logits as the last stage's ranks see them.
std::vector<torch::Tensor> logits_of(const Fixture& fixture, Degrees degrees,
                                     std::span<const std::vector<std::int64_t>> sequences,
                                     DType dtype = DType::fp32) {
  std::vector<torch::Tensor> results;
  std::mutex mutex;
  on_ranks(fixture.spec, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder, dtype);
    const PackedTokens tokens = pack_tokens(sequences, torch::kCPU);
    const torch::Tensor hidden = pipeline_forward(weights, groups, tokens);
    if (!groups.last_stage) return;
    const torch::Tensor logits = full_logits(weights, groups, hidden);
    const std::lock_guard lock(mutex);
    results.push_back(logits);
  });
  return results;
}

TEST_P(Logits, EqualTransformers) {
  const Fixture fixture = read_fixture(GetParam().fixture);
  const auto results = logits_of(fixture, GetParam().degrees, fixture.sequences);
  ASSERT_EQ(static_cast<int>(results.size()), GetParam().degrees.tp * GetParam().degrees.dp);
  for (const torch::Tensor& logits : results) {
    EXPECT_LE(relative_error(logits, fixture.logits), 1e-5);
    EXPECT_TRUE(torch::equal(logits, results.front()));
  }
}

TEST(LongropeLogits, AreRefused) {
  Fixture fixture = read_fixture("tiny-llama");
  fixture.spec.rope.kind = RopeScalingKind::longrope;
  on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    EXPECT_THROW(loaded(fixture.spec, layout, groups, fixture.folder), Error);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name :
       {"tiny-llama", "tiny-llama-biased", "tiny-llama-linear", "tiny-llama-llama3",
        "tiny-llama-yarn", "tiny-llama-yarn-mscale", "tiny-mistral", "tiny-mistral-window",
        "tiny-qwen2", "tiny-qwen2-tied", "tiny-qwen2-window", "tiny-qwen3", "tiny-qwen3-tied"}) {
    for (const Degrees degrees : {Degrees{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}, {3, 1}}) {
      all.push_back({name, degrees});
    }
  }
  for (const char* name : {"tiny-mixtral", "tiny-mixtral-tied", "tiny-qwen2-moe",
                           "tiny-qwen2-moe-unbiased", "tiny-qwen3-moe", "tiny-qwen3-moe-step"}) {
    for (const Degrees degrees : {Degrees{1, 1},
                                  {2, 1},
                                  {4, 1},
                                  {1, 2},
                                  {3, 1},
                                  {1, 1, 2, 2},
                                  {2, 1, 2, 2},
                                  {1, 1, 4, 4},
                                  {4, 1, 1, 1, 2},
                                  {4, 1, 1, 2, 2},
                                  {4, 1, 2, 4, 2},
                                  {4, 1, 1, 2, 1}}) {
      all.push_back({name, degrees});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Logits, ::testing::ValuesIn(cases()), name_of_case);

/// The first `lengths[i]` tokens of sequence i; causality makes the full sequences' logits the
/// oracle.
void expect_prefixes_match(const Fixture& fixture, const std::vector<std::size_t>& lengths) {
  std::vector<std::vector<std::int64_t>> prefixes;
  std::vector<torch::Tensor> wanted;
  const auto whole = static_cast<std::int64_t>(fixture.sequences.front().size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t sequence = i % fixture.sequences.size();
    const auto& ids = fixture.sequences[sequence];
    prefixes.emplace_back(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(lengths[i]));
    wanted.push_back(fixture.logits.narrow(0, static_cast<std::int64_t>(sequence) * whole,
                                           static_cast<std::int64_t>(lengths[i])));
  }
  const auto results = logits_of(fixture, {}, prefixes);
  EXPECT_LE(relative_error(results.at(0), torch::cat(wanted)), 1e-5);
}

TEST(PackedBatch, SequencesOfAnyLengthsDoNotSeeOneAnother) {
  expect_prefixes_match(read_fixture("tiny-llama"), {3, 17, 1, 9, 16, 2});
}

TEST(PackedBatch, EqualLengthsNeedNoPadding) {
  expect_prefixes_match(read_fixture("tiny-qwen3"), {8, 8, 8, 8});
}

TEST(PackedBatch, WindowHoldsForEverySequence) {
  expect_prefixes_match(read_fixture("tiny-mistral-window"), {18, 7, 12, 8});
}

TEST(PackedBatch, Bf16IsCloseToFp32) {
  const Fixture fixture = read_fixture("tiny-qwen2");
  for (const Degrees degrees : {Degrees{1, 1}, {2, 1}}) {
    const auto results = logits_of(fixture, degrees, fixture.sequences, DType::bf16);
    // transformers in bf16 is 0.040 away from its own fp32 on these large random weights.
    EXPECT_LE(relative_error(results.at(0), fixture.logits), 5e-2);
  }
}

}  // namespace
}  // namespace tessera::testing
