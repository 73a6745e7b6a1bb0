#include "executor/preference/reward_state.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/data/tokenizer.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/share.h"
#include "executor/run_state/restore.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRole = "reward";
constexpr std::int64_t kKept = 2;  // checkpoints

/// With what any rank has found wrong.
void throw_agreed(Communicator& host, const Problems& problems, ExitCode code) {
  const std::string wrong = share_problems(host, problems);
  if (!wrong.empty()) throw Error(code, wrong);
}

nlohmann::ordered_json json_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
}

/// The token that the tokenizer pads with; nullopt where it names none.
std::optional<std::int32_t> padding_token(const fs::path& source, Problems& problems) {
  const auto config = json_in(source / "tokenizer_config.json");
  if (!config.is_object() || !config.contains("pad_token")) return std::nullopt;
  auto pad = config.at("pad_token");
  if (pad.is_object() && pad.contains("content")) pad = pad.at("content");
  if (!pad.is_string()) return std::nullopt;
  const auto tokenizer = Tokenizer::open(source, problems);
  return tokenizer ? tokenizer->id_of(pad.get<std::string>()) : std::nullopt;
}

}  // namespace

std::string classifier_config(const fs::path& source, std::int32_t end, Problems& problems) {
  constexpr std::string_view kClassifier = "ForSequenceClassification";
  const fs::path file = source / "config.json";
  auto config = json_in(file);
  std::string name;
  if (config.is_object() && config.contains("architectures")) {
    const auto& names = config.at("architectures");
    if (names.is_array() && !names.empty() && names.at(0).is_string()) name = names.at(0);
  }
  std::string classifier;
  for (const std::string_view head :
       {std::string_view("ForCausalLM"), std::string_view("ForTokenClassification"), kClassifier}) {
    if (!name.ends_with(head)) continue;
    classifier = name.substr(0, name.size() - head.size()) + std::string(kClassifier);
  }
  if (classifier.empty()) {
    problems.push_back({.file = file.string(),
                        .place = "/architectures",
                        .found = name.empty() ? "nothing" : "'" + name + "'",
                        .expected = "one of a class whose sequences transformers classifies: "
                                    "...ForCausalLM"});
    return {};
  }
  config["architectures"] = {classifier};
  config["num_labels"] = 1;
  config["id2label"] = {{"0", "LABEL_0"}};
  config["label2id"] = {{"LABEL_0", 0}};
  // transformers scores the last token that is no padding.
  const bool padded = config.contains("pad_token_id") && config.at("pad_token_id") != nullptr &&
                      config.at("pad_token_id") != end;
  if (!padded) {
    const auto pad = padding_token(source, problems);
    config.erase("pad_token_id");
    if (pad && *pad != end) config["pad_token_id"] = *pad;
  }
  return config.dump(2) + "\n";
}

RewardState::RewardState(const fs::path& output, const Weights& weights, Trainer& trainer,
                         Communicator& host, CheckpointData data)
    : checkpoints_(checkpoints_of(output)),
      host_(host),
      data_(std::move(data)),
      weights_(weights),
      trainer_(trainer),
      snapshot_(kRole, weights, trainer),
      writer_(checkpoints_, host.rank(), host.size(), {.newest = kKept}) {}

std::int64_t RewardState::resume() {
  Problems problems;
  std::string newest;
  if (host_.rank() == 0) {
    remove_leftovers(checkpoints_);
    for (const fs::path& folder : checkpoints_in(checkpoints_)) {
      if (!newest.empty()) break;
      if (read_manifest(folder, problems)) newest = folder.string();
    }
    if (!newest.empty()) problems.clear();
  }
  throw_agreed(host_, problems, ExitCode::bad_input);
  newest = share_texts(host_, newest).front();
  if (newest.empty()) return 0;
  const auto checkpoint = open_checkpoint(newest, problems);
  throw_agreed(host_, problems, ExitCode::bad_input);
  if (checkpoint->manifest.data != data_) {
    problems.push_back({.file = newest,
                        .found = std::to_string(checkpoint->manifest.data.prompts) + " pairs (" +
                                 checkpoint->manifest.data.digest + "), " +
                                 std::to_string(checkpoint->manifest.data.per_step) + " a step",
                        .expected = "the pairs, batch and seed that it was trained with: " +
                                    std::to_string(data_.prompts) + " (" + data_.digest + "), " +
                                    std::to_string(data_.per_step) + " a step"});
  }
  throw_agreed(host_, problems, ExitCode::bad_input);
  restore_role(*checkpoint, kRole, weights_, trainer_, problems);
  throw_agreed(host_, problems, ExitCode::bad_input);
  return saved_ = checkpoint->manifest.step;
}

void RewardState::save(std::int64_t step) {
  trainer_.wake();
  snapshot_.take();
  CheckpointManifest manifest{.step = step,
                              .created = utc_now(),
                              .tessera_version = TESSERA_VERSION,
                              .roles = {},
                              .rules = {},
                              .data = data_,
                              .lengths = {},
                              .metrics = {},
                              .files = {}};
  manifest.roles[kRole] = {.model = kRole,
                           .parameters = weights_.table.elements(),
                           .dtype = weights_.dtype,
                           .optimizer_steps = trainer_.optimizer().state().steps,
                           .layout = {}};
  writer_.begin(std::move(manifest), snapshot_.tensors());
  const Problems& own = writer_.await_own();
  writer_.settle(!any_rank(host_, !own.empty()));
  Problems problems = own;
  for (const CheckpointEnd& end : writer_.take_ends()) {
    problems.insert(problems.end(), end.problems.begin(), end.problems.end());
  }
  throw_agreed(host_, problems, ExitCode::io);
  saved_ = step;
}

void save_reward_model(const fs::path& folder, const fs::path& source, const std::string& config,
                       const Weights& weights, const ParallelGroups& groups, Trainer& trainer) {
  std::vector<torch::Tensor> tensors;
  ModelFolderContents contents{
      .config_json = config, .tensors = {}, .tokenizer_from = source, .extra_files = {}};
  trainer.with_whole_weights([&] {
    gather_weights(weights, groups, [&](const Parameter& parameter, const torch::Tensor& tensor) {
      contents.tensors.push_back({parameter.name, weights.dtype, parameter.shape});
      tensors.push_back(tensor.clone());
    });
  });
  if (groups.index != 0) return;
  Problems problems;
  std::error_code error;
  const fs::path fresh = folder.string() + ".new";
  fs::remove_all(fresh, error);
  const auto copy = [&](std::size_t i, std::span<std::byte> destination, Problems&) {
    std::memcpy(destination.data(), tensors[i].data_ptr(), destination.size());
    return true;
  };
  if (write_model_folder(fresh, contents, copy, problems)) {
    fs::remove_all(folder, error);
    if (!error) fs::rename(fresh, folder, error);
    if (error) problems.push_back({.file = folder.string(), .found = error.message()});
  }
  if (!problems.empty()) throw Error(ExitCode::io, std::move(problems));
}

}  // namespace tessera
