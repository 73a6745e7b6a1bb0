// The certificate of vLLM's workers: digests by block of what the trainer's ranks hold, against
// what workers hold that vLLM's own rules have loaded, sound and with thousands of faults.
#include "executor/vllm/served_certificate.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "executor/certificate/block_digests.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr int kFaults = 10000;
constexpr std::int64_t kBlockElements = 256;

json config_of(const std::string& type, std::int64_t layers) {
  return {{"architectures", {type == "qwen2" ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM"}},
          {"model_type", type},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 4},
          {"vocab_size", 70},
          {"tie_word_embeddings", type == "qwen2"},
          {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 64},
          {"torch_dtype", "float32"},
          {"hidden_act", "silu"}};
}

/// A server's workers, the ranks that train for them, and what these expect.
json case_of(const std::filesystem::path& folder, const std::string& type, ParallelLayout training,
             int tp) {
  training.stages = {{0, 1}};
  const json config = config_of(type, 1);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config;
  Problems problems;
  const ParameterTable table =
      parameter_table(*parse_model_spec(config.dump(), "config.json", problems));
  const RankMap map = contiguous(training);
  std::vector<std::vector<int>> ranks(1);
  for (int tp_rank = 0; tp_rank < tp; ++tp_rank) ranks[0].push_back(100 + tp_rank);
  const auto tensors = served_tensors(table, &map, DType::fp32, ranks);

  // What each rank owns, as a run's ranks add it up.
  std::vector<std::uint64_t> expected;
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    const WeightCertificate mine = make_certificate(tensors, map.ranks[i], kBlockElements);
    const ArenaLayout arena = arena_layout(table, map.layout, map.coords[i], DType::fp32, true);
    const std::vector<std::byte> memory = expected_arena(table, arena);
    expected.resize(mine.blocks.size());
    for (const int block : mine.trained) {
      const CertificateBlock& each = mine.blocks[static_cast<std::size_t>(block)];
      if (each.owner != map.ranks[i]) continue;
      expected[static_cast<std::size_t>(block)] = block_digests(
          mine, {&arena, memory.data()}, std::span(&each, 1), std::nullopt, host_memory_ops())[0];
    }
  }
  json rectangles = json::array(), digests = json::array(), shapes = json::array();
  std::vector<std::vector<ServedRectangle>> lists;
  for (int tp_rank = 0; tp_rank < tp; ++tp_rank) {
    const WeightCertificate mine = make_certificate(tensors, 100 + tp_rank, kBlockElements);
    const auto parts = vllm_parts(table, tp, tp_rank);
    json words = json::array();
    lists.emplace_back();
    for (const int block : mine.needed) {
      const auto index = static_cast<std::size_t>(block);
      lists.back().push_back(rectangle_of(mine, parts, mine.blocks[index]));
      words.push_back(std::to_string(expected[index]));
    }
    digests.push_back(words);
  }
  for (const Parameter& row : table.rows) shapes.push_back({row.name, row.shape});
  return {{"folder", folder.string()},
          {"tp", tp},
          {"rectangles", json::parse(rectangles_json(lists))},
          {"digests", digests},
          {"tensors", shapes}};
}

TEST(ServedCertificate, NamesExactlyTheBlocksThatTenThousandFaultsChange) {
  const std::string python = python_with("torch");
  if (python.empty()) GTEST_SKIP() << "no Python with torch";
  const TemporaryFolder folder;
  json cases = json::array();
  cases.push_back(case_of(folder.path / "a", "qwen2", {{.dp = 3, .dp_shard = 3}, 3}, 2));
  cases.push_back(case_of(folder.path / "b", "qwen3", {{.tp = 2}}, 4));
  cases.push_back(case_of(folder.path / "c", "qwen2", {{.tp = 2, .dp = 2}}, 1));
  std::ofstream(folder.path / "cases.json") << cases;
  const std::string here = TESSERA_SOURCE_DIR "/tests/executor/vllm/";
  EXPECT_EQ(std::system(("PYTHONPATH=" TESSERA_SOURCE_DIR "/integrations/vllm '" + python + "' " +
                         here + "faults_oracle.py " + (folder.path / "cases.json").string() + " " +
                         std::to_string(kFaults))
                            .c_str()),
            0);
}

/// Elements of a holder that changes what it is told to.
TEST(ServedCertificate, TheFirstAndLastElementThatDifferAreFound) {
  const CertificateBlock block{.tensor = 0,
                               .box = {.dims = {Interval{2, 9}, Interval{3, 8}}, .rank = 2}};
  const auto digests = [](const std::vector<std::pair<std::int64_t, std::int64_t>>& wrong) {
    return [wrong](std::span<const CertificateBlock> blocks) {
      std::vector<std::uint64_t> sums;
      for (const CertificateBlock& each : blocks) {
        std::uint64_t sum = 0;
        for (const auto& [row, column] : wrong) {
          const bool in = row >= each.box.dims[0].lo && row < each.box.dims[0].hi &&
                          column >= each.box.dims[1].lo && column < each.box.dims[1].hi;
          if (in) sum += static_cast<std::uint64_t>(1 + row * 100 + column);
        }
        sums.push_back(sum);
      }
      return sums;
    };
  };
  const DifferingEnds ends = differing_ends(block, digests({}), digests({{4, 7}, {4, 5}, {8, 3}}));
  EXPECT_EQ(ends.first.dims[0].lo, 4);
  EXPECT_EQ(ends.first.dims[1].lo, 5);
  EXPECT_EQ(ends.last.dims[0].lo, 8);
  EXPECT_EQ(ends.last.dims[1].lo, 3);
  const VllmPart part{
      .row = 0, .parameter = "p", .box = {.dims = {Interval{2, 12}, Interval{0, 10}}, .rank = 2}};
  EXPECT_EQ(bytes_between(part, ends.first, ends.last, 4), (ByteRange{100, 156}));
}

}  // namespace
}  // namespace tessera
