// Adapters on every layout against peft on one process: log-probs, gradients, an AdamW step,
// folders both ways; and what is drawn and moved does not depend on the layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "executor/adapters/adapter_reshard.h"
#include "executor/adapters/adapter_weights.h"
#include "executor/checkpoint/peft_folder.h"
#include "executor/comm/thread_communicator.h"
#include "executor/data/init_model.h"
#include "executor/train/trainer.h"
#include "tests/executor/python_oracle.h"
#include "tests/executor/train/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT
namespace fs = std::filesystem;
using torch::Tensor;

constexpr const char* kShape = R"({
  "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu",
  "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 4, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "max_window_layers": 4,
  "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "use_sliding_window": false,
  "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "float32", "vocab_size": 53,
  "initializer_range": 0.2, "bos_token_id": null, "eos_token_id": 1, "pad_token_id": 0
})";
constexpr const char* kUntied = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
  "hidden_size": 48, "intermediate_size": 37, "num_hidden_layers": 4, "num_attention_heads": 6,
  "num_key_value_heads": 3, "head_dim": 8, "max_position_embeddings": 64, "rms_norm_eps": 1e-06,
  "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float32",
  "attention_bias": false, "mlp_bias": false, "vocab_size": 53, "initializer_range": 0.2,
  "bos_token_id": null, "eos_token_id": 1, "pad_token_id": 0
})";

/// A model's folder, its adapters, and what peft makes of them.
struct Example {
  std::string name;
  const char* config;
  Lora lora;
  ModelSpec model;
  std::map<std::string, Tensor> expected;
};

Tensor tensor_of(const TensorView& view) {
  Tensor tensor = torch::empty(view.shape, scalar_type(view.dtype));
  std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

const Tokens& tokens() {
  static const Tokens made = random_tokens(9, 53, 40);
  return made;
}

/// Over the response tokens: sum of slope * log-prob, as the oracle has it.
LossFunction sloped_loss(int dp) {
  return [dp](std::span<const int> sequences, std::span<const double> scores,
              std::span<const double>) {
    LossGradient loss;
    std::size_t next = 0;
    for (const int s : sequences) {
      const std::size_t count = tokens().responses[static_cast<std::size_t>(s)].size();
      for (std::size_t t = 0; t < count; ++t, ++next) {
        const double slope = std::sin(1.0 + 3.7 * s + 1.3 * static_cast<double>(t));
        loss.value += dp * slope * scores[next];
        loss.score_gradient.push_back(dp * slope);
      }
    }
    loss.weight = static_cast<double>(next);
    return loss;
  };
}

class Adapters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    python_ = python_with("peft");
    folder_ = new TemporaryFolder;
    for (Example& example : examples_) prepare(example);
    if (python_.empty()) return;
    const std::string script =
        TESSERA_SOURCE_DIR "/tests/executor/adapters/adapters_oracle.py train ";
    ASSERT_EQ(run_python(python_, script + folder_->path.string()), 0);
    for (Example& example : examples_) {
      Problems problems;
      const auto file = open_safetensors(folder(example) / "expected.safetensors", problems);
      ASSERT_TRUE(file) << to_string(problems.at(0));
      for (const TensorView& view : file->tensors) example.expected[view.name] = tensor_of(view);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static fs::path folder(const Example& example) { return folder_->path / example.name; }

  /// The model, drawn adapters as Tessera writes them, and the tokens.
  static void prepare(Example& example) {
    const fs::path own = folder(example), shape = folder_->path / (example.name + "-shape");
    fs::create_directories(own);
    fs::create_directories(shape);
    std::ofstream(shape / "config.json") << example.config;
    Problems problems;
    ASSERT_TRUE(init_model(shape, own / "model", {.seed = 3}, problems));
    fs::remove_all(shape);
    example.model = *read_model_spec(own / "model", problems);
    nlohmann::json all = nlohmann::json::array();
    for (const TokenSequence& each : tokens().sequences()) {
      all.push_back(
          {{"prompt", std::vector<std::int32_t>(each.prompt.begin(), each.prompt.end())},
           {"response", std::vector<std::int32_t>(each.response.begin(), each.response.end())}});
    }
    std::ofstream(own / "tokens.json") << all;
    run_ranks(1, [&](Communicator& world) {
      const auto role = make_role(world, example.model, layout_of(example.model, 1, 1, 1));
      Weights adapters = make_adapters(role->weights, example.lora);
      draw_adapters(adapters, 11);
      write(example, adapters, role->groups, own / "ours");
    });
  }

  static void write(const Example& example, const Weights& adapters, const ParallelGroups& groups,
                    const fs::path& to) {
    std::vector<Tensor> tensors;
    PeftFolderContents contents{.lora = example.lora,
                                .base_model = (folder(example) / "model").string()};
    if (contents.lora.targets.empty()) {
      contents.lora.targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                               "gate_proj", "up_proj", "down_proj"};
    }
    gather_weights(adapters, groups, [&](const Parameter& parameter, const Tensor& tensor) {
      contents.tensors.push_back({parameter.name, DType::fp32, parameter.shape});
      tensors.push_back(tensor.clone());
    });
    if (groups.index != 0) return;
    Problems problems;
    const TensorSource source = [&](std::size_t i, std::span<std::byte> destination, Problems&) {
      std::memcpy(destination.data(), tensors[i].data_ptr(), destination.size());
      return true;
    };
    EXPECT_TRUE(write_peft_folder(to, contents, source, problems));
  }

  inline static TemporaryFolder* folder_ = nullptr;
  inline static std::string python_;
  inline static std::vector<Example> examples_{
      {"qwen2", kShape, {.rank = 4, .alpha = 8, .targets = {}}},
      {"llama", kUntied, {.rank = 3, .alpha = 5, .targets = {"q_proj", "v_proj", "down_proj"}}}};
};

/// A role of the example with peft's adapters.
struct Adapted {
  std::unique_ptr<RoleOnRank> role;
  std::unique_ptr<Weights> adapters;
};

Adapted adapted(Communicator& world, const Example& example, const fs::path& folder,
                const ParallelLayout& layout) {
  Adapted made{.role = make_role(world, example.model, layout), .adapters = nullptr};
  Weights& weights = made.role->weights;
  Problems problems;
  load_weights(weights, folder / "model", 0, problems);
  made.adapters = std::make_unique<Weights>(make_adapters(weights, example.lora));
  load_adapters(*made.adapters, folder / "peft", problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems.at(0));
  attach_adapters(weights, *made.adapters, example.lora);
  return made;
}

void expect_log_probs(const LogProbs& got, const Tensor& want, double tolerance,
                      const std::string& what) {
  std::int64_t next = 0;
  double largest = 0;
  for (const std::vector<float>& row : got.log_prob) {
    for (const float value : row) {
      largest = std::max(largest, std::abs(value - want[next++].item<double>()));
    }
  }
  EXPECT_EQ(next, want.numel()) << what;
  EXPECT_LE(largest, tolerance) << what;
}

void expect_rows(const Weights& adapters, const std::vector<Tensor>& got, const Example& example,
                 const std::string& what, double tolerance) {
  double of_all = 0;
  for (const auto& [name, tensor] : example.expected)
    if (name.starts_with(what)) of_all = std::max(of_all, tensor.abs().max().item<double>());
  ASSERT_GT(of_all, 0);
  for (std::size_t row = 0; row < got.size(); ++row) {
    if (!got[row].defined()) continue;
    const std::string& name = adapters.table.rows[row].name;
    const Tensor want =
        slice_like(adapters, static_cast<int>(row), example.expected.at(what + "/" + name), 0);
    EXPECT_LE((got[row].detach() - want).abs().max().item<double>(), tolerance * of_all)
        << what << " of " << name;
  }
}

struct LayoutOfAdapters {
  std::string name;
  int tp, pp, replicate, shard, zero;
  bool sequence = false;
  int vpp = 1, cp = 1;
  Recompute recompute = Recompute::none;
  bool offload = false;
};

const std::vector<LayoutOfAdapters>& adapter_layouts() {
  static const std::vector<LayoutOfAdapters> all{
      {"One", 1, 1, 1, 1, 0},
      {"Tp2", 2, 1, 1, 1, 0},
      {"Tp2Sequence", 2, 1, 1, 1, 0, true},
      {"Tp4", 4, 1, 1, 1, 0},
      {"Tp4SequenceFull", 4, 1, 1, 1, 0, true, 1, 1, Recompute::full},
      {"Dp2", 1, 1, 2, 1, 0},
      {"Zero1", 1, 1, 2, 1, 1},
      {"Fsdp2", 1, 1, 1, 2, 3},
      {"Hsdp2x2Full", 1, 1, 2, 2, 3, false, 1, 1, Recompute::full},
      {"Tp2Fsdp2Selective", 2, 1, 1, 2, 3, true, 1, 1, Recompute::selective},
      {"Tp2Pp2", 2, 2, 1, 1, 0},
      {"Pp2Virtual2Dp2", 1, 2, 2, 1, 0, false, 2},
      {"Pp2Fsdp2", 1, 2, 1, 2, 3},
      {"Cp2Tp2", 2, 1, 1, 1, 0, false, 1, 2},
      {"Dp2Offload", 1, 1, 2, 1, 0, false, 1, 1, Recompute::none, true}};
  return all;
}

ParallelLayout layout_for(const ModelSpec& model, const LayoutOfAdapters& c) {
  ParallelLayout made = layout(model, c.tp, c.pp, c.replicate, c.shard, c.zero, c.sequence, c.vpp);
  made.cp = c.cp;
  return made;
}

TEST_F(Adapters, EveryLayoutTrainsThemAsPeftDoes) {
  if (python_.empty()) GTEST_SKIP() << "no Python with peft";
  for (const Example& example : examples_) {
    for (const LayoutOfAdapters& c : adapter_layouts()) {
      SCOPED_TRACE(example.name + c.name);
      const ParallelLayout layout = layout_for(example.model, c);
      run_ranks(layout.ranks(), [&](Communicator& world) {
        const Adapted made = adapted(world, example, folder(example), layout);
        std::vector<Tensor> frozen;
        for (const Tensor& each : made.role->weights.tensors) {
          frozen.push_back(each.defined() ? each.clone() : each);
        }
        Trainer trainer(made.role->weights, made.role->groups,
                        AdamWOptions{.eps = 1e-4, .clip_norm = 0.5, .offload = c.offload},
                        {.recompute = c.recompute,
                         .adapters = made.adapters.get(),
                         .offload_parameters = c.offload,
                         .offload_gradients = c.offload});
        const InferOptions infer{.token_limit = 25};
        InferOptions without = infer;
        without.adapters = false;
        const auto batch = tokens().sequences();
        expect_log_probs(trainer.log_probs(batch, without), example.expected.at("reference"), 1e-4,
                         "reference");
        expect_log_probs(trainer.log_probs(batch, infer), example.expected.at("log_prob"), 1e-4,
                         "with adapters");
        const UpdateResult result = trainer.update(batch, sloped_loss(layout.dp),
                                                   {.token_limit = 25, .learning_rate = 1e-2});
        const double norm = example.expected.at("norm").item<double>();
        EXPECT_NEAR(result.grad_norm, norm, 1e-4 * norm);
        EXPECT_GT(norm, 0.5) << "clipping acts";
        expect_rows(*made.adapters, trainer.optimizer().whole_gradients(), example, "grad", 1e-4);
        trainer.rest();
        expect_log_probs(trainer.log_probs(batch, infer), example.expected.at("after"), 2e-3,
                         "after a step");
        trainer.wake();
        expect_rows(*made.adapters, made.adapters->tensors, example, "stepped", 1e-4);
        trainer.with_whole_weights([&] {
          for (std::size_t row = 0; row < frozen.size(); ++row) {
            const Tensor& now = made.role->weights.tensors[row];
            if (!frozen[row].defined()) continue;
            EXPECT_TRUE(torch::equal(now, frozen[row])) << "a frozen weight has changed";
            EXPECT_FALSE(now.requires_grad());
          }
        });
        EXPECT_EQ(trainer.optimizer().state().count,
                  made.adapters->arena.bytes / made.adapters->arena.element_bytes)
            << "states of the adapters alone";
      });
    }
  }
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What one rank draws and writes every layout draws and writes.
TEST_F(Adapters, AreDrawnAndWrittenAlikeOnEveryLayout) {
  for (const Example& example : examples_) {
    for (const LayoutOfAdapters& c : adapter_layouts()) {
      SCOPED_TRACE(example.name + c.name);
      const fs::path to = folder_->path / "written";
      const ParallelLayout layout = layout_for(example.model, c);
      run_ranks(layout.ranks(), [&](Communicator& world) {
        const auto role = make_role(world, example.model, layout);
        Weights adapters = make_adapters(role->weights, example.lora);
        draw_adapters(adapters, 11);
        write(example, adapters, role->groups, to);
      });
      for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
        EXPECT_EQ(bytes_of(to / name), bytes_of(folder(example) / "ours" / name)) << name;
      }
      fs::remove_all(to);
    }
  }
}

/// A reshard brings each rank what it lacks and no more, and digests tell what did not come.
TEST_F(Adapters, MoveAloneToTheRollout) {
  const Example& example = examples_[0];
  const ParameterTable table = adapter_table(parameter_table(example.model), example.lora);
  const ParallelLayout from = layout(example.model, 2, 2, 1, 1, 0),
                       to = layout_of(example.model, 2, 1, 2);
  const std::vector<int> ranks{0, 1, 2, 3};
  Problems problems;
  const RankMap training =
      make_rank_map(RankOrder::contiguous, from, ranks, nullptr, "a", problems);
  const RankMap rollout = make_rank_map(RankOrder::contiguous, to, ranks, nullptr, "b", problems);
  run_ranks(4, [&](Communicator& world) {
    const auto trained = make_role(world, example.model, from);
    const auto generating = make_role(world, example.model, to);
    Weights source = make_adapters(trained->weights, example.lora);
    Weights destination = make_adapters(generating->weights, example.lora);
    draw_adapters(source, 11);
    AdapterReshard reshard(table, training, rollout, DType::fp32, world.rank(), {});
    const ReshardReport report = reshard.run(world, &source, &destination);
    std::int64_t all = 0;
    for (const ArenaSlot& slot : destination.arena.slots) all += slot.range.bytes;
    EXPECT_EQ(report.received, all / 2) << "the other stage's";
    EXPECT_EQ(report.busiest, report.lower_bound);
    MemoryOps& ops = host_memory_ops();
    EXPECT_EQ(reshard.check(&source, &destination, ops, world).differing, 0);
    Weights alone = make_adapters(generating->weights, example.lora);
    draw_adapters(alone, 11);
    for (std::size_t row = 0; row < alone.tensors.size(); ++row) {
      EXPECT_TRUE(torch::equal(alone.tensors[row], destination.tensors[row]));
    }
    if (world.rank() == 1) destination.tensors[0].view(-1)[3] += 1;
    EXPECT_GT(reshard.check(&source, &destination, ops, world).differing, 0);
  });
}

TEST_F(Adapters, OfAnotherKindAreRefusedWithWhatIsWrong) {
  const fs::path folder = folder_->path / "refused";
  fs::create_directories(folder);
  const auto refusal = [&](const std::string& changed) {
    std::ofstream(folder / "adapter_config.json")
        << "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"target_modules\": [\"q_proj\"]"
        << changed << "}";
    Problems problems;
    const bool read = read_peft_settings(folder, problems).has_value();
    EXPECT_EQ(read, problems.empty());
    return problems.empty() ? std::string() : to_string(problems.front());
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(", \"modules_to_save\": null, \"rank_pattern\": {}, \"use_dora\": false"), "");
  for (const char* key : {"use_rslora", "use_dora", "fan_in_fan_out"}) {
    EXPECT_NE(refusal(", \"" + std::string(key) + "\": true").find(key), std::string::npos) << key;
  }
  EXPECT_NE(refusal(", \"bias\": \"all\"").find("bias"), std::string::npos);
  EXPECT_NE(refusal(", \"rank_pattern\": {\"q_proj\": 8}").find("rank_pattern"), std::string::npos);

  run_ranks(1, [&](Communicator& world) {
    const Example& llama = examples_[1];
    const auto role = make_role(world, llama.model, layout_of(llama.model, 1, 1, 1));
    Lora other = llama.lora;
    other.rank = 5;
    Weights wrong = make_adapters(role->weights, other);
    Problems problems;
    load_adapters(wrong, this->folder(llama) / "ours", problems);
    EXPECT_FALSE(problems.empty());
    EXPECT_NE(to_string(problems.front()).find("another shape"), std::string::npos);
    other = llama.lora;
    other.targets = {"q_proj"};
    Weights fewer = make_adapters(role->weights, other);
    problems.clear();
    load_adapters(fewer, this->folder(llama) / "ours", problems);
    EXPECT_FALSE(problems.empty());
    EXPECT_NE(to_string(problems.front()).find("of no adapter"), std::string::npos);
  });
}

}  // namespace
}  // namespace tessera
