#include "tests/executor/model/fixture.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/checkpoint/safetensors.h"
#include "executor/comm/thread_communicator.h"

namespace tessera::testing {
namespace {

std::filesystem::path folder_from(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : std::filesystem::path(TESSERA_SOURCE_DIR) / fallback;
}

/// The fields of a config.json that the fixtures use.
ModelSpec spec_of(const nlohmann::json& c) {
  const std::map<std::string, ModelFamily> families{{"llama", ModelFamily::llama},
                                                    {"mistral", ModelFamily::mistral},
                                                    {"qwen2", ModelFamily::qwen2},
                                                    {"qwen3", ModelFamily::qwen3}};
  ModelSpec s{.family = families.at(c["model_type"])};
  s.layers = c["num_hidden_layers"], s.hidden = c["hidden_size"];
  s.query_heads = c["num_attention_heads"], s.kv_heads = c["num_key_value_heads"];
  s.head_dim = c.value("head_dim", s.hidden / s.query_heads);
  s.ffn = c["intermediate_size"], s.vocab = c["vocab_size"];
  s.max_positions = c["max_position_embeddings"];
  s.tied_embeddings = c.value("tie_word_embeddings", false);
  s.qkv_bias = s.family == ModelFamily::qwen2 || c.value("attention_bias", false);
  s.output_bias = s.family != ModelFamily::qwen2 && c.value("attention_bias", false);
  s.mlp_bias = c.value("mlp_bias", false);
  s.qk_norm = s.family == ModelFamily::qwen3;
  s.norm_epsilon = c["rms_norm_eps"];
  s.dtype = DType::fp32;
  if (c.contains("sliding_window") && c["sliding_window"].is_number() &&
      c.value("use_sliding_window", true)) {
    s.sliding_window = c["sliding_window"];
  }
  nlohmann::json r = c.value("rope_parameters", nlohmann::json::object());
  if (c.contains("rope_scaling") && c["rope_scaling"].is_object()) r.update(c["rope_scaling"]);
  s.rope.theta = r.value("rope_theta", c.value("rope_theta", 10000.0));
  const std::string kind = r.value("rope_type", "default");
  s.rope.factor = r.value("factor", 1.0);
  s.rope.original_max_position_embeddings = r.value("original_max_position_embeddings", 0);
  if (kind == "linear") s.rope.kind = RopeScalingKind::linear;
  if (kind == "llama3") s.rope.kind = RopeScalingKind::llama3;
  s.rope.low_freq_factor = r.value("low_freq_factor", 0.0);
  s.rope.high_freq_factor = r.value("high_freq_factor", 0.0);
  if (kind == "yarn") {
    s.rope.kind = RopeScalingKind::yarn;
    s.rope.beta_fast = r.value("beta_fast", 32.0), s.rope.beta_slow = r.value("beta_slow", 1.0);
    s.rope.truncate = r.value("truncate", true);
    const auto scale = [&](double m) { return 0.1 * m * std::log(s.rope.factor) + 1.0; };
    s.rope.attention_factor = r.contains("mscale") && r.contains("mscale_all_dim")
                                  ? scale(r["mscale"]) / scale(r["mscale_all_dim"])
                                  : r.value("attention_factor", scale(1.0));
  }
  return s;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

}  // namespace

std::filesystem::path fixtures_dir() {
  return folder_from("TESSERA_FIXTURES_DIR", "tests/fixtures/models");
}
std::filesystem::path golden_dir() { return folder_from("TESSERA_GOLDEN_DIR", "tests/golden"); }

Fixture read_fixture(const std::string& name) {
  Fixture fixture{.folder = fixtures_dir() / name};
  Problems problems;
  const auto spec = std::optional(spec_of(read_json(fixture.folder / "config.json")));
  const auto file = open_safetensors(fixture.folder / "logits.safetensors", problems);
  if (!spec || !file) throw Error(ExitCode::bad_input, problems);
  fixture.spec = *spec;
  fixture.sequences =
      read_json(fixture.folder / "input_ids.json").get<std::vector<std::vector<std::int64_t>>>();
  const TensorView& view = file->tensors.at(0);
  fixture.logits = torch::empty({view.elements() / spec->vocab, spec->vocab}, torch::kFloat);
  std::memcpy(fixture.logits.mutable_data_ptr(), view.data.data(), view.data.size());
  return fixture;
}

ModelSpec small_model(std::int64_t query_heads, std::int64_t kv_heads, std::int64_t layers) {
  ModelSpec spec{.family = ModelFamily::qwen3,
                 .layers = layers,
                 .hidden = 24,
                 .query_heads = query_heads,
                 .kv_heads = kv_heads,
                 .head_dim = 8,
                 .ffn = 37,
                 .vocab = 29,
                 .max_positions = 64,
                 .qkv_bias = true,
                 .qk_norm = true,
                 .dtype = DType::fp32};
  return spec;
}

ParallelLayout layout_of(const ModelSpec& spec, Degrees degrees) {
  return {.tp = degrees.tp,
          .pp = degrees.pp,
          .dp_replicate = degrees.dp,
          .stages = even_stages(spec.layers, degrees.pp)};
}

void on_ranks(const ModelSpec& spec, Degrees degrees, const RankBody& fn) {
  const ParallelLayout layout = layout_of(spec, degrees);
  std::vector<int> ranks;
  for (int rank = 0; rank < layout.ranks(); ++rank) ranks.push_back(rank);
  Problems problems;
  const RankMap map =
      make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "role", problems);
  if (!problems.empty()) throw Error(ExitCode::internal, problems);
  at::set_num_threads(1);
  run_ranks(layout.ranks(), [&](Communicator& world) {
    at::set_num_threads(1);
    const ParallelGroups groups = make_groups(world, map);
    fn(layout, groups);
  });
}

Weights loaded(const ModelSpec& spec, const ParallelLayout& layout, const ParallelGroups& groups,
               const std::filesystem::path& folder, DType dtype) {
  Weights weights = make_weights(parameter_table(spec), layout, groups.coord, dtype, torch::kCPU);
  if (folder.empty()) {
    initialize(weights, 5, 0.3);
    return weights;
  }
  Problems problems;
  load_weights(weights, folder, 1, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, problems);
  return weights;
}

void pass_on(const ParallelGroups& groups, const torch::Tensor& x, int from, int to) {
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  const torch::Tensor own = x.detach().contiguous();
  if (groups.coord.pp == from) sends.push_back({to, own.const_data_ptr(), own.nbytes()});
  if (groups.coord.pp == to) receives.push_back({from, x.mutable_data_ptr(), x.nbytes()});
  groups.pp->exchange(sends, receives);
}

torch::Tensor pipeline_forward(const Weights& weights, const ParallelGroups& groups,
                               const PackedTokens& tokens) {
  torch::NoGradGuard no_grad;
  torch::Tensor hidden =
      torch::empty({tokens.tokens(), weights.model().hidden}, weights.storage.options());
  for (int stage = 0; stage < groups.pp_size; ++stage) {
    if (groups.coord.pp == stage) hidden = stage_forward(weights, groups, tokens, hidden);
    if (stage + 1 < groups.pp_size) pass_on(groups, hidden, stage, stage + 1);
  }
  return hidden;
}

double relative_error(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

}  // namespace tessera::testing
