#include "tests/executor/model/fixture.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/comm/thread_communicator.h"

namespace tessera::testing {
namespace {

std::filesystem::path folder_from(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : std::filesystem::path(TESSERA_SOURCE_DIR) / fallback;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

torch::Tensor tensor_of(const TensorView& view) {
  torch::Tensor tensor = torch::empty(view.shape, scalar_type(view.dtype));
  std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

}  // namespace

std::filesystem::path fixtures_dir() {
  return folder_from("TESSERA_FIXTURES_DIR", "tests/fixtures/models");
}
std::filesystem::path golden_dir() { return folder_from("TESSERA_GOLDEN_DIR", "tests/golden"); }

Fixture read_fixture(const std::string& name) {
  Fixture fixture{.folder = fixtures_dir() / name};
  Problems problems;
  const auto spec = read_model_spec(fixture.folder, problems);
  const auto file = open_safetensors(fixture.folder / "logits.safetensors", problems);
  if (!spec || !file) throw Error(ExitCode::bad_input, problems);
  fixture.spec = *spec;
  fixture.sequences =
      read_json(fixture.folder / "input_ids.json").get<std::vector<std::vector<std::int64_t>>>();
  fixture.logits = tensor_of(file->tensors.at(0)).view({-1, spec->vocab});
  if (!spec->moe) return fixture;
  const auto gradients = open_safetensors(fixture.folder / "gradients.safetensors", problems);
  const auto replay = open_safetensors(fixture.folder / "replay.safetensors", problems);
  if (!gradients || !replay) throw Error(ExitCode::bad_input, problems);
  for (const TensorView& view : gradients->tensors) {
    fixture.gradients[std::string(view.name)] = tensor_of(view);
  }
  for (const TensorView& view : replay->tensors) {
    fixture.replay[std::string(view.name)] = tensor_of(view);
  }
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
  const int parts = degrees.etp > 0 ? degrees.etp : degrees.tp;
  return {{.tp = degrees.tp,
           .pp = degrees.pp,
           .dp = degrees.dp,
           .ep = degrees.ep,
           .etp = spec.moe ? parts : 1},
          0,
          even_stages(spec.layers, degrees.pp),
          degrees.sequence};
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
  const double difference = (a - b).abs().max().item<double>();
  const double largest = b.abs().max().item<double>();
  return largest > 0 ? difference / largest : difference;
}

}  // namespace tessera::testing
