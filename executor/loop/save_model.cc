#include "executor/loop/save_model.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/model_folder.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Gives `fresh` the name `folder`.
bool replace(const std::filesystem::path& folder, const std::filesystem::path& fresh,
             Problems& problems) {
  std::error_code error;
  const std::filesystem::path old = folder.string() + ".old";
  std::filesystem::remove_all(old, error);
  if (std::filesystem::exists(folder, error)) std::filesystem::rename(folder, old, error);
  if (!error) std::filesystem::rename(fresh, folder, error);
  if (error) {
    problems.push_back({.file = folder.string(), .found = error.message()});
    return false;
  }
  std::filesystem::remove_all(old, error);
  return true;
}

}  // namespace

void save_actor(Worker& worker, const Plan& plan, const TrainingOrigin& origin,
                const std::filesystem::path& folder) {
  const RoleWorker& actor = *worker.find(Role::actor);
  if (!actor.member()) return;
  std::vector<torch::Tensor> tensors;
  std::vector<TensorSpec> specs;
  const auto keep = [&](const Parameter& parameter, const torch::Tensor& tensor) {
    specs.push_back({parameter.name, actor.weights->dtype, parameter.shape});
    tensors.push_back(tensor.clone());
  };
  actor.trainer->with_whole_weights([&] { gather_weights(*actor.weights, actor.groups, keep); });
  if (!actor.leader()) return;

  const std::filesystem::path source = plan.models.at(actor.plan->model).path;
  ModelFolderContents contents{.config_json = read_text(source / "config.json"),
                               .tensors = std::move(specs),
                               .tokenizer_from = source,
                               .extra_files = {{kTrainingOriginName, to_json(origin)}}};
  Problems problems;
  const TensorSource fill = [&](std::size_t index, std::span<std::byte> destination, Problems&) {
    std::memcpy(destination.data(), tensors[index].data_ptr(), destination.size());
    return true;
  };
  const std::filesystem::path fresh = folder.string() + ".new";
  std::error_code error;
  std::filesystem::remove_all(fresh, error);
  if (!write_model_folder(fresh, contents, fill, problems) || !replace(folder, fresh, problems)) {
    throw Error(ExitCode::io, std::move(problems));
  }
}

}  // namespace tessera
