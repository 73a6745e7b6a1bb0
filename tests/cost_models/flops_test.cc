// Oracle: matrix products and caches of transformers' own models (flops_oracle.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/memory.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string family;
  ModelSpec model;
  Json counted;
};

std::vector<Case> cases() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/flops/transformers.json");
  std::vector<Case> all;
  const Json fixture = Json::parse(file);
  for (const Json& each : fixture.at("cases")) {
    Problems problems;
    auto model = parse_model_spec(each.at("config").dump(), "config.json", problems);
    EXPECT_TRUE(model) << each.at("family") << Error(ExitCode::bad_input, problems).what();
    if (model) all.push_back({each.at("family"), *std::move(model), each});
  }
  return all;
}

TEST(Flops, AreWithinThreePercentOfThoseOfTransformersForEveryFamily) {
  std::set<std::string> families;
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.family + " h " + std::to_string(each.model.hidden));
    families.insert(each.family);
    const auto tokens = each.counted.at("tokens").get<double>();
    const double counted = each.counted.at("flops").get<double>() / tokens;
    EXPECT_NEAR(forward_flops_per_token(each.model, tokens) / counted, 1, 0.03);
  }
  EXPECT_EQ(families.size(), 42U);
}

TEST(Cache, GrowsWithATokenAndKeepsAStateAsThatOfTransformersDoes) {
  int states = 0;
  for (const Case& each : cases()) {
    if (!each.counted.contains("cached")) continue;
    SCOPED_TRACE(each.family + " h " + std::to_string(each.model.hidden));
    const RankModel rank{{}, each.model, DType::bf16};
    const auto cached = [&](double tokens) {
      return rollout_memory(rank, DType::bf16, 1, tokens, 1).kv_cache;
    };
    const std::int64_t elements = (cached(65) - cached(64)).value / 2;
    EXPECT_EQ(elements, each.counted.at("cached").get<std::int64_t>());
    std::int64_t state = 0;
    for (const auto& [type, count] : each.counted.at("state").items()) {
      state += count.get<std::int64_t>() * (type == "torch.float32" ? 4 : 2);
    }
    EXPECT_EQ(cached(0).value, state);
    if (state > 0) ++states;
  }
  EXPECT_EQ(states, 16);
}

// Keys that each query sees, one by one: Llama 4's in chunks of 8,192 in three of four layers, and
// the 2,048 of the highest scores of DeepSeek-V3.2's indexer, which scores all of them.
TEST(Flops, OfChunksAndOfChosenKeysAreThoseOfThePairs) {
  const auto of = [](const char* name) {
    Problems problems;
    return read_model_spec(name, problems).value_or(ModelSpec{});
  };
  const ModelSpec chunked = of("llama4-scout"), chosen = of("deepseek-v3.2");
  for (const std::int64_t length : {1000L, 8192L, 20000L, 65536L}) {
    double in_chunks = 0, highest = 0, all = 0;
    for (std::int64_t at = 0; at < length; ++at) {  // a query's own key counts as half
      in_chunks += static_cast<double>(at % 8192) + 0.5;
      highest += std::min(static_cast<double>(at) + 0.5, 2048.0);
      all += static_cast<double>(at) + 0.5;
    }
    const auto tokens = static_cast<double>(length);
    const auto attention = [&](const ModelSpec& model) {
      return (forward_flops_per_token(model, tokens) - forward_flops_per_token(model, 0)) * tokens;
    };
    const double pair = 2.0 * 40 * (128 + 128);
    EXPECT_NEAR(attention(chunked) / (pair * (36 * in_chunks + 12 * all)), 1, 0.001) << length;
    const double latent = 2.0 * 128 * (192 + 128), score = 2.0 * 64 * (128 + 1);
    EXPECT_NEAR(attention(chosen) / (61 * (latent * highest + score * all)), 1, 0.001) << length;
  }
}

// DeepSeek-V4's layers, key by key and entry by entry: a window of 128 keys, and of every 4 tokens
// an entry of which an indexer chooses 512, or of every 128 one.
TEST(Flops, OfAWindowAndOfEntriesAreThoseOfThePairs) {
  Problems problems;
  const auto model = read_model_spec("deepseek-v4-flash", problems);
  ASSERT_TRUE(model);
  for (const std::int64_t length : {100L, 1024L, 4096L, 65536L}) {
    double window = 0, chosen = 0, all = 0, scored = 0;
    for (std::int64_t at = 0; at < length; ++at) {  // a query's own key counts as half
      const double before = static_cast<double>(at) + 0.5;
      window += std::min(before, 128.0);
      chosen += std::min(before / 4, 512.0);
      scored += before / 4;
      all += before / 128;
    }
    const auto tokens = static_cast<double>(length);
    const double attention =
        (forward_flops_per_token(*model, tokens) - forward_flops_per_token(*model, 0)) * tokens;
    const double pair = 2.0 * 64 * (512 + 512), score = 2.0 * 64 * (128 + 1);
    const double counted = pair * (43 * window + 21 * chosen + 20 * all) + score * 21 * scored;
    EXPECT_NEAR(attention / counted, 1, 0.001) << length;
  }
}

// What a sequence of DeepSeek-V4 keeps: an entry (of two heads, the indexer's is the second) every
// 4 or 128 tokens, windows, and what is no entry yet; the same on every rank. A decoded token reads
// the window, the chosen entries and the indexer's keys.
TEST(Cache, OfEntriesGrowsOnceInSeveralTokensAndIsWholeOnEveryRank) {
  Problems problems;
  const auto calibration = find_calibration("h200", problems);
  const auto model = read_model_spec("deepseek-v4-flash", problems);
  ASSERT_TRUE(calibration && model);
  const auto kept = [&](int tp, double tokens) {
    const RankModel rank{{.tp = tp}, *model, DType::bf16};
    return static_cast<double>(rollout_memory(rank, DType::bf16, 1, tokens, 1).kv_cache.value);
  };
  const double grown = 2 * (21 * (512 + 128) / 4.0 + 20 * 512 / 128.0);
  EXPECT_NEAR((kept(1, 65536) - kept(1, 4096)) / (65536 - 4096), grown, 0.01 * grown);
  EXPECT_EQ(kept(1, 4096), kept(8, 4096));
  const double window = 2 * 512 * (43 * 128 + 21 * 4 * 4 * (512 + 128) / 512.0 + 20 * 2 * 128);
  EXPECT_NEAR(kept(1, 0), window, 1);
  RankModel rank{{.tp = 8}, *model, DType::bf16};
  rank.kind = LayerKind::chosen_sparse;
  const auto step = [&](double context) {
    return layer_decode(rank, 64, {context}, *calibration).device.value;
  };
  const double scores = 64 * (40000.0 - 4096) / 4 * 2 * 64 * 129 / calibration->matmul_flops.value;
  const double read = 64 * (40000.0 - 4096) / 4 * 256 / calibration->memory_bandwidth.value;
  EXPECT_NEAR(step(40000) - step(4096), std::max(scores, read), 1e-3 * std::max(scores, read));
  rank.kind = LayerKind::window_sparse;
  EXPECT_EQ(step(40000), step(4096));
}

// GLM-5.2: three of four layers look at the keys chosen before them. They have no indexer: neither
// its products nor its scores nor its keys in the cache.
TEST(Flops, OfLayersThatShareAChoiceLackAnIndexer) {
  Problems problems;
  const auto every = read_model_spec("glm5", problems);
  const auto shared = read_model_spec("glm5.2", problems);
  ASSERT_TRUE(every && shared);
  EXPECT_EQ(std::ssize(shared->indexer->shared_layers), 57);
  const double matrices = 2.0 * (32 * 128 * 2048 + (128 + 32) * 6144);
  for (const double length : {1024.0, 65536.0}) {
    const double scores = 2.0 * 32 * (128 + 1) * length / 2;
    EXPECT_NEAR(forward_flops_per_token(*every, length) - forward_flops_per_token(*shared, length),
                57 * (matrices + scores), 1e-6 * 57 * (matrices + scores));
  }
  const auto kept = [](const ModelSpec& model) {
    return cache_bytes_per_token({{}, model, DType::bf16}, DType::bf16).value;
  };
  EXPECT_EQ(kept(*every), 2 * (576 + 128));
  EXPECT_NEAR(kept(*shared), 2 * (576 + 128 * 21.0 / 78), 1);
}

// What a sequence keeps: chunks of Llama 4's layers are given up at their end, an indexer's keys
// are kept beside the latents, whole on every rank, and are read in full at every step.
TEST(Cache, OfChunksEndsWithThemAndAnIndexersKeysAreKeptWhole) {
  Problems problems;
  const auto calibration = find_calibration("h200", problems);
  const auto chunked = read_model_spec("llama4-scout", problems);
  const auto indexed = read_model_spec("deepseek-v3.2", problems);
  ASSERT_TRUE(calibration && chunked && indexed);
  const RankModel llama{{.tp = 8}, *chunked, DType::bf16};
  const std::int64_t each = std::int64_t{2} * 128 * 2;  // one head's key and value in 16 bit
  EXPECT_EQ(rollout_memory(llama, DType::bf16, 1, 32768, 1).kv_cache.value,
            each * (12 * 32768 + 36 * 8192));
  RankModel latent{{.tp = 8}, *indexed, DType::bf16};
  EXPECT_EQ(cache_bytes_per_token(latent, DType::bf16), (512 + 64 + 128) * 2);
  const auto step = [&](double context) {
    return layer_decode(latent, 64, {context}, *calibration).device.value;
  };
  // Beyond the chosen keys a step grows by the indexer's alone: its scores, or 256 bytes a key.
  const double grown = 64 * 30000.0;
  const double scored = grown * 2 * 64 * 129 / calibration->matmul_flops.value;
  const double read = grown * 256 / calibration->memory_bandwidth.value;
  EXPECT_NEAR(step(34096) - step(4096), std::max(scored, read), 1e-3 * std::max(scored, read));
  EXPECT_GT(step(2048) - step(1024), 1024.0 * 64 * 576 * 2 / calibration->memory_bandwidth.value);
}

// Layers that cache nothing take the state's bytes, whatever the context is.
TEST(LinearAttention, DecodesInTheSameTimeWhateverTheContextIs) {
  Problems problems;
  const auto calibration = find_calibration("h100", problems);
  const auto model = read_model_spec("qwen3-next-80b-a3b", problems);
  ASSERT_TRUE(calibration && model);
  RankModel rank{{}, *model, DType::bf16};
  const auto decode = [&](LayerKind kind, double context) {
    rank.kind = kind;
    return layer_decode(rank, 64, {context}, *calibration).device;
  };
  EXPECT_EQ(decode(LayerKind::linear_sparse, 1024), decode(LayerKind::linear_sparse, 262144));
  EXPECT_GT(decode(LayerKind::sparse, 262144), 2 * decode(LayerKind::sparse, 1024));
  const auto forward = [&](LayerKind kind, double length) {
    rank.kind = kind;
    return layer_forward(rank, {65536, 65536 / length, 65536 * length}, *calibration).device;
  };
  EXPECT_EQ(forward(LayerKind::linear_sparse, 4096), forward(LayerKind::linear_sparse, 65536));
  EXPECT_GT(forward(LayerKind::sparse, 65536), 1.5 * forward(LayerKind::sparse, 4096));
}

TEST(LinearAttention, IsCutByHeadsAndHoldsItsPartOfTheState) {
  Problems problems;
  const auto model = read_model_spec("qwen3-next-80b-a3b", problems);
  ASSERT_TRUE(model);
  RankModel rank{{}, *model, DType::bf16};
  const LayerShape shape = layer_shape(*model, LayerKind::linear_sparse);
  // 32 heads of 128 x 128 in fp32, and 4 inputs of 8,192 channels in 16 bit.
  EXPECT_EQ(recurrent_state_bytes(rank, shape, DType::bf16).value,
            32 * 128 * 128 * 4 + 4 * 8192 * 2);
  rank.tp = 4;
  EXPECT_EQ(recurrent_state_bytes(rank, shape, DType::bf16).value,
            8 * 128 * 128 * 4 + 4 * 2048 * 2);
}

}  // namespace
}  // namespace tessera
