// Slices of vLLM's workers against vLLM's own way to load a checkpoint, through the real way:
// blocks of this process, mapped by Python over their sockets, or sent to it.
#include "executor/vllm/slices.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "cost_models/layout/model_tensors.h"
#include "executor/vllm/block_giver.h"
#include "executor/vllm/weight_messages.h"
#include "planner/engines/vllm_weights.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

using nlohmann::json;

/// Dense decoders whose sizes are awkward: a vocabulary that workers share unevenly, fewer KV heads
/// than workers, biases, norms of queries and keys, a tied head and one of its own.
const std::map<std::string, json> kModels = {{"qwen2",
                                              {{"architectures", {"Qwen2ForCausalLM"}},
                                               {"model_type", "qwen2"},
                                               {"hidden_size", 32},
                                               {"intermediate_size", 48},
                                               {"num_hidden_layers", 2},
                                               {"num_attention_heads", 8},
                                               {"num_key_value_heads", 2},
                                               {"vocab_size", 130},
                                               {"tie_word_embeddings", true}}},
                                             {"qwen3",
                                              {{"architectures", {"Qwen3ForCausalLM"}},
                                               {"model_type", "qwen3"},
                                               {"hidden_size", 24},
                                               {"intermediate_size", 32},
                                               {"num_hidden_layers", 3},
                                               {"num_attention_heads", 4},
                                               {"num_key_value_heads", 4},
                                               {"head_dim", 8},
                                               {"vocab_size", 200},
                                               {"tie_word_embeddings", false}}},
                                             {"llama",
                                              {{"architectures", {"LlamaForCausalLM"}},
                                               {"model_type", "llama"},
                                               {"hidden_size", 32},
                                               {"intermediate_size", 40},
                                               {"num_hidden_layers", 2},
                                               {"num_attention_heads", 8},
                                               {"num_key_value_heads", 4},
                                               {"vocab_size", 67},
                                               {"tie_word_embeddings", false}}}};

json config_of(const std::string& name) {
  json config = kModels.at(name);
  config["rms_norm_eps"] = 1e-6;
  config["max_position_embeddings"] = 64;
  config["torch_dtype"] = "float32";
  config["hidden_act"] = "silu";
  return config;
}

ModelSpec model_of(const std::string& name) {
  Problems problems;
  const auto model = parse_model_spec(config_of(name).dump(), name, problems);
  EXPECT_TRUE(model) << (problems.empty() ? "" : to_string(problems.front()));
  return *model;
}

struct Training {
  const char* name;
  ParallelLayout layout;
};

std::vector<Training> trainings(std::int64_t layers) {
  const auto whole = [&](ParallelLayout layout) {
    layout.stages = {{0, layers}};
    return layout;
  };
  ParallelLayout pipeline{{.tp = 2, .pp = 2}};
  pipeline.stages = {{0, 1}, {1, layers}};
  return {{"one", whole({})},
          {"tp4", whole({{.tp = 4}})},
          {"tp2pp2", pipeline},
          {"dp2", whole({{.dp = 2}})},
          {"fsdp4", whole({{.dp = 4, .dp_shard = 4}, 3})},
          {"tp2fsdp3", whole({{.tp = 2, .dp = 3, .dp_shard = 3}, 3})}};
}

/// A training rank's memory, as it would offer it.
struct OfferedBlock {
  std::unique_ptr<SharedBlock> block;
  std::unique_ptr<BlockGiver> giver;
};

OfferedBlock offer(const ParameterTable& table, const ArenaLayout& arena) {
  const std::vector<std::byte> bytes = expected_arena(table, arena);
  OfferedBlock offered{.block = make_host_block(static_cast<std::int64_t>(bytes.size()))};
  std::memcpy(offered.block->data(), bytes.data(), bytes.size());
  offered.giver = std::make_unique<BlockGiver>(*offered.block);
  return offered;
}

class VllmSlices : public testing::Test {
 protected:
  /// Appends the case, and keeps its blocks.
  void add_case(const std::string& model, const Training& training, int tp) {
    const ParameterTable table = parameter_table(model_of(model));
    const RankMap map = contiguous(training.layout);
    std::vector<VllmBlock> named;
    for (const RankCoord& coord : map.coords) {
      offered_.push_back(offer(table, arena_layout(table, map.layout, coord, DType::fp32, true)));
      named.push_back({offered_.back().giver->name(), offered_.back().block->bytes()});
    }
    std::vector<VllmWorkerSlices> workers;
    json bytes = json::array(), tensors = json::array();
    for (int tp_rank = 0; tp_rank < tp; ++tp_rank) {
      workers.push_back(vllm_slices(table, map, DType::fp32, tp, tp_rank, tp_rank));
      bytes.push_back(workers.back().bytes);
    }
    const std::string mapped = vllm_table_json(workers, named, DType::fp32, false);
    const std::string messages = begin_to_send(table, map, tp, workers);
    for (const Parameter& row : table.rows) tensors.push_back({row.name, row.shape});
    const std::filesystem::path folder = folder_.path / model;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config_of(model);
    cases_.push_back({{"name", model + " " + training.name + " tp" + std::to_string(tp)},
                      {"folder", folder.string()},
                      {"tp", tp},
                      {"table", mapped},
                      {"messages", messages},
                      {"tensors", tensors},
                      {"bytes", bytes}});
  }

  /// Links of the ranks whose blocks were offered last, which wait for the workers; their table.
  std::string begin_to_send(const ParameterTable& table, const RankMap& map, int tp,
                            std::vector<VllmWorkerSlices>& workers) {
    cut_rounds(table, DType::fp32, tp, workers, 4096);
    VllmLinkTable link{.senders = senders_to(workers),
                       .sockets = {},
                       .nccl_id = {},
                       .workers = tp,
                       .first_worker = 0};
    const std::size_t first = offered_.size() - map.ranks.size();
    for (const int rank : link.senders) {
      const SharedBlock& block = *offered_[first + static_cast<std::size_t>(rank)].block;
      std::shared_ptr<WeightLink> sender = make_socket_link(tp, 300);
      link.sockets.push_back(sender->name());
      const std::vector<WeightRound> rounds = rounds_of(rank, block.data(), workers, DType::fp32);
      sending_.push_back(std::async(std::launch::async, [sender, rounds] {
        sender->join();
        sender->send(rounds);
        sender->finish();
      }));
    }
    return vllm_table_json(workers, link, DType::fp32, false);
  }

  TemporaryFolder folder_;
  std::vector<OfferedBlock> offered_;
  std::vector<std::future<void>> sending_;
  json cases_ = json::array();
};

TEST_F(VllmSlices, WorkersHoldWhatVllmWouldLoad) {
  const std::string python = python_with("torch");
  if (python.empty()) GTEST_SKIP() << "no Python with torch";
  for (const auto& [model, config] : kModels) {
    for (const Training& training : trainings(config["num_hidden_layers"])) {
      for (const int tp : {1, 2, 4}) add_case(model, training, tp);
    }
  }
  add_case("qwen2", trainings(2).front(), 8);  // four workers a KV head
  const std::filesystem::path file = folder_.path / "cases.json";
  std::ofstream(file) << cases_;
  const std::string here = TESSERA_SOURCE_DIR "/tests/executor/vllm/";
  EXPECT_EQ(std::system(("PYTHONPATH=" TESSERA_SOURCE_DIR "/integrations/vllm '" + python + "' " +
                         here + "slices_oracle.py " + file.string())
                            .c_str()),
            0);
  for (std::future<void>& each : sending_) EXPECT_NO_THROW(each.get());
  EXPECT_EQ(cases_.size(), 55U);
}

/// Every slice from the worker's own rank, where that holds it; else each byte from one other rank.
TEST_F(VllmSlices, NothingThatARankHoldsComesFromAnother) {
  const ParameterTable table = parameter_table(model_of("qwen3"));
  for (const Training& training : trainings(3)) {
    const RankMap map = contiguous(training.layout);
    for (int tp_rank = 0; tp_rank < 2; ++tp_rank) {
      const VllmWorkerSlices worker = vllm_slices(table, map, DType::bf16, 2, tp_rank, tp_rank);
      std::int64_t needed = 0, held = 0;
      for (const VllmPart& part : vllm_parts(table, 2, tp_rank)) {
        needed += volume(part.box) * 2;
        const int own = map.index_of(tp_rank);
        if (own < 0) continue;
        const auto box = stored_box(table.rows[part.row], map.layout, map.coords[own]);
        if (box) held += volume(intersect(*box, part.box)) * 2;
      }
      EXPECT_EQ(worker.bytes, needed) << training.name;
      EXPECT_EQ(worker.bytes_moved, needed - held) << training.name;
    }
  }
}

TEST(VllmRefusals, SayWhatDoesNotDivide) {
  using testing::HasSubstr;
  const auto reasons = [](const std::string& model, int tp) {
    std::string all;
    for (const std::string& one : vllm_refusals(model_of(model), {{.tp = tp}})) all += one + "\n";
    return all;
  };
  EXPECT_EQ(reasons("qwen2", 8), "");
  EXPECT_THAT(reasons("qwen2", 3), HasSubstr("8 query heads"));
  EXPECT_THAT(reasons("qwen2", 3), HasSubstr("2 heads and 3 workers"));
  EXPECT_THAT(reasons("qwen2", 5), HasSubstr("192 rows of the padded vocabulary"));
  EXPECT_THAT(reasons("qwen3", 64), HasSubstr("32 columns of the MLP"));
  ModelSpec experts = model_of("qwen3");
  experts.moe = MoeSpec{};
  EXPECT_THAT(vllm_refusals(experts, {}), testing::Contains(HasSubstr("routed experts")));
  EXPECT_THAT(vllm_refusals(model_of("qwen3"), {{.pp = 2}}),
              testing::Contains(HasSubstr("stages")));
}

}  // namespace
}  // namespace tessera
