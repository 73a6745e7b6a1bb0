#include "executor/preference/reward_state.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/share.h"
#include "executor/run_state/restore.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRole = "reward";
constexpr std::int64_t kKept = 2;  // checkpoints

/// What any rank has found wrong, once each.
void throw_agreed(Communicator& host, const Problems& problems, ExitCode code) {
  std::string mine;
  for (const Problem& problem : problems) mine += (mine.empty() ? "" : "\n") + to_string(problem);
  std::set<std::string> told;
  std::string all;
  for (const std::string& text : share_texts(host, mine)) {
    if (!text.empty() && told.insert(text).second) all += (all.empty() ? "" : "\n") + text;
  }
  if (!all.empty()) throw Error(code, all);
}

/// The configuration of a classifier of one label with the same body.
std::string classifier_config(const fs::path& source) {
  std::ifstream in(source / "config.json", std::ios::binary);
  auto config = nlohmann::ordered_json::parse(in);
  std::string name = config.at("architectures").at(0);
  for (const char* head : {"ForCausalLM", "ForTokenClassification"}) {
    if (name.ends_with(head)) {
      name = name.substr(0, name.size() - std::strlen(head)) + "ForSequenceClassification";
    }
  }
  config["architectures"] = {name};
  config["num_labels"] = 1;
  config["id2label"] = {{"0", "LABEL_0"}};
  config["label2id"] = {{"LABEL_0", 0}};
  return config.dump(2) + "\n";
}

}  // namespace

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
  return checkpoint->manifest.step;
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
}

void save_reward_model(const fs::path& folder, const fs::path& source, const Weights& weights,
                       const ParallelGroups& groups, Trainer& trainer) {
  std::vector<torch::Tensor> tensors;
  ModelFolderContents contents{.config_json = classifier_config(source),
                               .tensors = {},
                               .tokenizer_from = source,
                               .extra_files = {}};
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
