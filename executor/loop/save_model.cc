#include "executor/loop/save_model.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/peft_folder.h"
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

/// Whole tensors of a role, on its leader.
struct GatheredTensors {
  std::vector<torch::Tensor> tensors;
  std::vector<TensorSpec> specs;

  void gather(const Weights& weights, const ParallelGroups& groups) {
    gather_weights(weights, groups, [&](const Parameter& parameter, const torch::Tensor& tensor) {
      specs.push_back({parameter.name, weights.dtype, parameter.shape});
      tensors.push_back(tensor.clone());
    });
  }
  TensorSource source() const {
    return [this](std::size_t index, std::span<std::byte> destination, Problems&) {
      std::memcpy(destination.data(), tensors[index].data_ptr(), destination.size());
      return true;
    };
  }
};

bool write_adapters(const GatheredTensors& gathered, const RoleWorker& actor, const Lora& lora,
                    const TrainingOrigin& origin, const std::filesystem::path& source,
                    const std::filesystem::path& folder, Problems& problems) {
  const Lora named{.rank = lora.rank,
                   .alpha = lora.alpha,
                   .targets = adapted_modules(actor.weights->table, lora)};
  // peft looks for a relative path from wherever it is called.
  const std::filesystem::path base = std::filesystem::absolute(source).lexically_normal();
  return write_peft_folder(folder,
                           {.lora = named,
                            .base_model = base.string(),
                            .tensors = gathered.specs,
                            .tokenizer_from = source,
                            .extra_files = {{kTrainingOriginName, to_json(origin)}}},
                           gathered.source(), problems);
}

bool write_model(GatheredTensors& gathered, const TrainingOrigin& origin,
                 const std::filesystem::path& source, const std::filesystem::path& folder,
                 Problems& problems) {
  const ModelFolderContents contents{.config_json = read_text(source / "config.json"),
                                     .tensors = std::move(gathered.specs),
                                     .tokenizer_from = source,
                                     .extra_files = {{kTrainingOriginName, to_json(origin)}}};
  return write_model_folder(folder, contents, gathered.source(), problems);
}

}  // namespace

void save_actor(Worker& worker, const Plan& plan, const RunConfig& config,
                const TrainingOrigin& origin, const std::filesystem::path& folder) {
  const RoleWorker& actor = *worker.find(Role::actor);
  if (!actor.member()) return;
  GatheredTensors gathered;
  const auto gather = [&] { gathered.gather(actor.trained(), actor.groups); };
  if (actor.adapters != nullptr) {
    actor.trainer->wake();
    gather();
  } else {
    actor.trainer->with_whole_weights(gather);
  }
  if (!actor.leader()) return;

  const std::filesystem::path source = plan.models.at(actor.plan->model).path;
  Problems problems;
  const std::filesystem::path fresh = folder.string() + ".new";
  std::error_code error;
  std::filesystem::remove_all(fresh, error);
  const bool written =
      actor.adapters != nullptr
          ? write_adapters(gathered, actor, config.actor.lora, origin, source, fresh, problems)
          : write_model(gathered, origin, source, fresh, problems);
  if (!written || !replace(folder, fresh, problems)) {
    throw Error(ExitCode::io, std::move(problems));
  }
}

}  // namespace tessera
