// Kernels whose rate depends on more than their FLOPs: windows, narrow heads, products in 8 bit,
// replayed decode steps. Oracles: rates of aiconfigurator-core 1.3's tables (Apache-2.0), counts,
// and transformers' own modules on an H200.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layer_operators.h"
#include "cost_models/rank_model.h"
#include "tests/cost_models/shipped_calibration.h"

namespace tessera {
namespace {

RankModel attending(std::int64_t head_dim, std::int64_t window) {
  RankModel rank;
  rank.model.layers = 2;
  rank.model.hidden = 4096;
  rank.model.query_heads = 64;
  rank.model.kv_heads = 8;
  rank.model.head_dim = head_dim;
  rank.model.ffn = 8192;
  rank.model.vocab = 32000;
  rank.model.sliding_window = window;
  return rank;
}

constexpr double kLength = 4096, kSequences = 8;
const TokenBatch kBatch{kSequences * kLength, kSequences, kSequences* kLength* kLength};

// FLOP/s of causal attention, of a window's own pairs of queries and keys.
double rate(std::int64_t head_dim, std::int64_t window, const Calibration& calibration) {
  const double w = static_cast<double>(window);
  const double keys = window > 0 ? w * (1 - w / (2 * kLength)) : kLength / 2;
  const double flops = 4.0 * static_cast<double>(head_dim) * 64 * kBatch.tokens * keys;
  return flops / layer_attention_seconds(attending(head_dim, window), kBatch, calibration).value;
}

// TensorRT-LLM, vLLM and SGLang reach from the first to the second at 4,096 tokens.
TEST(AttentionKernels, ReachTheMeasuredRatesInWindowsAndNarrowHeads) {
  const Calibration h100 = shipped("h100"), b200 = shipped("b200");
  const auto between = [](double value, double least, double most) {
    EXPECT_GE(value, 0.85 * least * 1e12);
    EXPECT_LE(value, 1.15 * most * 1e12);
  };
  between(rate(64, 0, h100), 347, 423);
  between(rate(64, 0, b200), 540, 631);
  between(rate(64, 128, h100), 50, 97);
  between(rate(64, 128, b200), 77, 142);
  between(rate(128, 128, h100), 106, 130);
  between(rate(128, 128, b200), 183, 226);
}

TEST(AttentionKernels, CostInAWindowWhatShortSequencesDo) {
  const Calibration h100 = shipped("h100");
  const TokenBatch shorter{kBatch.tokens, kBatch.tokens / 512, kBatch.tokens * 512};
  EXPECT_DOUBLE_EQ(layer_attention_seconds(attending(128, 128), kBatch, h100),
                   layer_attention_seconds(attending(128, 0), shorter, h100));
  // A window as long as the sequence is none.
  EXPECT_DOUBLE_EQ(layer_attention_seconds(attending(128, 4096), kBatch, h100),
                   layer_attention_seconds(attending(128, 0), kBatch, h100));
}

// Where fused kernels were priced, forward passes were said 12 to 39 % too short.
TEST(TransformersLayers, TakeWhatTheirModulesTookOnAnH200) {
  const Calibration h200 = shipped("h200");
  std::ifstream file(TESSERA_SOURCE_DIR "/benchmarks/results/h200-transformers-kernels.json");
  int rows = 0;
  const auto results = nlohmann::json::parse(file);
  for (const nlohmann::json& row : results["layers"]) {
    if (!row.contains("us_layer_token")) continue;
    Problems problems;
    RankModel rank;
    rank.model = *read_model_spec(
        TESSERA_SOURCE_DIR "/configs/models/qwen2.5-" + row["model"].get<std::string>(), problems);
    rank.traits.kernels.elementwise = ElementwiseKernels::transformers;
    rank.traits.kernels.attention = AttentionKernels::flash_2;
    constexpr double kSequence = 1524;
    const double tokens = row["tokens"];
    const TokenBatch batch{tokens, tokens / kSequence, tokens * kSequence};
    Seconds said = layer_forward(rank, batch, h200).device;
    if (row["what"] == "forward+backward") {
      said += layer_backward(rank, batch, Recompute::none, h200).device;
    }
    const double took = 1e-6 * row["us_layer_token"].get<double>() * tokens;
    // The smallest model's kernels are too short for the host to launch them in time.
    const double most = row["model"] == "0.5b" ? 0.15 : 0.05;
    EXPECT_NEAR(said.value / took, 1, most) << row["model"] << " " << row["what"];
    ++rows;
  }
  EXPECT_EQ(rows, 8);
}

TEST(EightBitProducts, SaveTheirPartOfTheProductsAndPayForCasts) {
  const Calibration h100 = shipped("h100");
  RankModel wide = attending(128, 0), narrow = wide;
  narrow.traits.kernels.product_speed = 2;
  const Seconds saved =
      layer_forward(wide, kBatch, h100).device - layer_forward(narrow, kBatch, h100).device;
  // Two norms' outputs, attention's and the activation's: 4 bytes for each element.
  const Seconds casts =
      stream_seconds(Traffic{4.0 * kBatch.tokens * (2 * 4096 + 8192 + 8192)}, h100);
  const Seconds products =
      h100.sustained.value * (matmul_seconds(kBatch.tokens, 10240, 4096, DType::bf16, h100) +
                              matmul_seconds(kBatch.tokens, 4096, 8192, DType::bf16, h100) +
                              matmul_seconds(kBatch.tokens, 16384, 4096, DType::bf16, h100) +
                              matmul_seconds(kBatch.tokens, 4096, 8192, DType::bf16, h100));
  EXPECT_NEAR(saved, products / 2 - casts, 1e-9);
  EXPECT_EQ(head_forward(wide, kBatch, h100).device, head_forward(narrow, kBatch, h100).device);
}

TEST(GroupedProducts, TakeTheCalibrationsRateOfFullTiles) {
  Calibration machine = shipped("h100");
  RankModel rank = attending(128, 0);
  rank.model.moe = MoeSpec{.experts = 16, .experts_per_token = 4, .expert_ffn = 4096};
  rank.kind = LayerKind::sparse;
  const Seconds before = layer_forward(rank, kBatch, machine).device;
  const double experts = 2.0 * kBatch.tokens * 4 * 3 * 4096 * 4096 /
                         (machine.grouped_rate.value * machine.matmul_flops.value);
  machine.grouped_rate.value /= 2;
  const Seconds after = layer_forward(rank, kBatch, machine).device;
  EXPECT_NEAR((after - before) / machine.sustained.value, experts, 1e-3 * experts);
}

// aiconfigurator-core 1.3, vLLM 0.24, 16 bit, balanced; the shortest of its kernels' times included
// permutation and activation.
TEST(GroupedProducts, OfFewRowsReadTheirMatricesAsOneProductDoes) {
  struct Measured {
    const char* device;
    std::int64_t hidden, columns;
    double tokens, seconds;
  };
  for (const Measured& point : {Measured{"h100", 4096, 1536, 64, 1609e-6},
                                {"h100", 4096, 1536, 512, 1766e-6},
                                {"h100", 2048, 768, 64, 432e-6},
                                {"h200", 4096, 1536, 64, 1130e-6},
                                {"b200", 4096, 1536, 64, 677e-6},
                                {"b200", 2048, 768, 512, 211e-6}}) {
    const Calibration machine = shipped(point.device);
    RankModel rank = attending(128, 0);
    rank.kind = LayerKind::sparse;
    rank.model.hidden = point.hidden;
    const auto products = [&](std::int64_t columns) {
      rank.model.moe = MoeSpec{.experts = 128, .experts_per_token = 8, .expert_ffn = columns};
      return layer_matmul_seconds(rank, rank.layer(), point.tokens, machine);
    };
    // Two grouped products; what stands beside them is that of experts of one column.
    EXPECT_NEAR((products(point.columns) - products(1)) / point.seconds, 1.0, 0.15)
        << point.device << " " << point.hidden << " " << point.tokens;
  }
}

TEST(DecodeSteps, OfReplayedGraphsDoNotWaitForTheHost) {
  const Calibration h100 = shipped("h100");
  RankModel eager = attending(128, 0), graphed = eager;
  graphed.traits.decode.graphed = true;
  EXPECT_GT(layer_decode(eager, 8, {1024}, h100).host, 0);
  EXPECT_EQ(layer_decode(graphed, 8, {1024}, h100).host, 0);
  EXPECT_LT(layer_decode(graphed, 8, {1024}, h100).device,
            layer_decode(eager, 8, {1024}, h100).device);
}

TEST(DecodeSteps, WhoseDispatchIsInNoGraphAreLaunched) {
  const Calibration h100 = shipped("h100");
  RankModel rank = attending(128, 0);
  rank.model.moe = MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 768};
  rank.traits.decode.graphed = true;
  const auto step = [&](int ep, bool dispatch, LayerKind kind) {
    rank.ep = ep;
    rank.kind = kind;
    rank.traits.decode.graphed_dispatch = dispatch;
    return layer_decode(rank, 8, {1024}, h100);
  };
  const Seconds launch{h100.dispatch_s.value};
  EXPECT_EQ(step(2, true, LayerKind::sparse).host, 0);
  EXPECT_EQ(step(1, false, LayerKind::sparse).host, 0) << "no messages";
  EXPECT_GT(step(2, false, LayerKind::sparse).host, 30 * launch);
  EXPECT_GT(step(2, false, LayerKind::dense).host, 10 * launch) << "the pass is one graph or none";
  rank.traits.decode.graphed = false;
  const Seconds eager = step(2, true, LayerKind::sparse).device;
  EXPECT_NEAR(step(2, false, LayerKind::sparse).device - eager, 18 * launch, 1e-9)
      << "the host waits for the sizes among the router's operators";
}

// Oracle: the tensors' sizes. Fused, a norm reads and writes each element; backward counts twice.
TEST(HeadNorms, ReadAndWriteQueriesAndKeysOnceMore) {
  const Calibration h100 = shipped("h100");
  RankModel plain = attending(128, 0), normed = plain;
  normed.model.qk_norm = true;
  const double bytes = 2 * 2 * 128 * (64 + 8);
  EXPECT_NEAR((layer_elementwise_bytes(normed) - layer_elementwise_bytes(plain)).value, bytes, 1);
  const Seconds floor{h100.kernel_floor_s.value};
  const Seconds passes = stream_seconds(Traffic{bytes * kBatch.tokens}, h100);
  EXPECT_NEAR(
      layer_forward(normed, kBatch, h100).device - layer_forward(plain, kBatch, h100).device,
      passes + 2 * floor, 1e-9);
  EXPECT_NEAR(layer_backward(normed, kBatch, Recompute::none, h100).device -
                  layer_backward(plain, kBatch, Recompute::none, h100).device,
              2 * passes + 4 * floor, 1e-9);
  normed.tp = plain.tp = 4;
  EXPECT_NEAR((layer_elementwise_bytes(normed) - layer_elementwise_bytes(plain)).value, bytes / 4,
              1);
}

TEST(Ring, LaunchesForEveryBlockThatArrives) {
  const Calibration h100 = shipped("h100");
  RankModel rank = attending(128, 0);
  const auto host = [&](int cp) {
    rank.cp = cp;
    return layer_forward(rank, kBatch, h100).host;
  };
  const Seconds alone = host(1), two = host(2), four = host(4);
  EXPECT_GT(two, alone);
  EXPECT_NEAR(four - two, 2 * kOperators.ring_forward_step * h100.dispatch_s.value, 1e-12);
}

}  // namespace
}  // namespace tessera
