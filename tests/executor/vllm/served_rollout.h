// A rollout of one rank whose server is the fake of vLLM (fake_vllm.py) over a tiny model, the
// memory that its weights are trained in, and prompts. For tests on one thread.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/arena/arena_layout.h"
#include "executor/vllm/vllm_rollout.h"
#include "tests/executor/python_oracle.h"

namespace tessera {

class ServedRollout : public testing::Test {
 protected:
  void SetUp() override {
    python_ = python_with("torch");
    if (python_.empty()) GTEST_SKIP() << "no Python with torch";
    ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
    std::ofstream(folder_.path / "config.json")
        << R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
  "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 24, "tie_word_embeddings": true, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 64, "torch_dtype": "float32", "hidden_act": "silu"})";
    Problems problems;
    table_ = std::make_shared<const ParameterTable>(
        parameter_table(*read_model_spec(folder_.path, problems)));
    places_ = arena_layout(*table_, layout_, {}, DType::fp32, true);
    block_ = make_host_block(places_.bytes);
    train(1);
    options_.program = {python_, TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py"};
    options_.start_timeout_s = 120;
    rollout_ = {
        .seed = 7, .max_response_tokens = 6, .eos = {3}, .max_sequences = 16, .prefill_tokens = 64};
    for (std::int32_t i = 0; i < 4; ++i) {
      prompts_.push_back({.prompt_index = i, .uid = std::to_string(i), .samples = 3});
      for (std::int32_t token = 0; token <= i; ++token) prompts_.back().tokens.push_back(5 + token);
    }
  }
  void TearDown() override {
    for (const char* name : {"FAKE_VLLM_FAULT", "FAKE_VLLM_ONCE"}) ::unsetenv(name);
  }

  /// The block's weights are those of the step.
  void train(std::int64_t step) {
    auto* const values = static_cast<float*>(block_->data());
    for (std::int64_t i = 0; i < places_.bytes / 4; ++i) {
      values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i * step)));
    }
  }

  VllmSetting setting() const {
    Problems problems;
    const std::vector<int> rank = {0};
    const RankMap map =
        make_rank_map(RankOrder::contiguous, layout_, rank, nullptr, "test", problems);
    return {.table = table_,
            .training = map,
            .rollout = map,
            .dtype = DType::fp32,
            .model = folder_.path.string(),
            .prompt_tokens = 8,
            .rollout_options = rollout_,
            .verify = true,
            .logs = folder_.path};
  }

  std::vector<Sequence> samples_of(VllmRollout& servers, std::int64_t step) const {
    std::vector<Sequence> sequences = servers.generate(step, prompts_, rollout_).sequences;
    servers.settle();
    return sequences;
  }

  const ParallelLayout layout_{{}, 0, {{0, 1}}};
  std::string python_;
  TemporaryFolder folder_;
  std::shared_ptr<const ParameterTable> table_;
  ArenaLayout places_;
  std::unique_ptr<SharedBlock> block_;
  VllmOptions options_;
  RolloutOptions rollout_;
  std::vector<TokenPrompt> prompts_;
};

}  // namespace tessera
