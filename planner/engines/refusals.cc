// What an engine refuses whatever the plan is: models, their types, clusters.
#include <algorithm>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "planner/engines/engine_check.h"
#include "planner/plan/hub_name.h"

namespace tessera {

void refuse_model(const Engine& engine, const ModelSource& model, const std::string& file,
                  const std::string& place, Problems& problems) {
  const std::vector<ModelFamily>& known = engine.capabilities.families;
  if (known.empty() || std::find(known.begin(), known.end(), model.spec.family) != known.end()) {
    const auto why = engine.capabilities.model;
    std::string found = why == nullptr ? std::string() : why(model.spec);
    const bool own = engine.traits.kernels.account == ActivationAccount::executor;
    if (found.empty() && own) found = unlike_executor(model);
    if (!found.empty()) {
      problems.push_back(
          {file, place, found, "a model that engine '" + engine.name + "' runs", {}});
    }
    return;
  }
  std::string names;
  for (const ModelFamily family : known) {
    if (!names.empty()) names += family == known.back() ? " or " : ", ";
    names += name_of(family);
  }
  problems.push_back({file, place, "'" + std::string(name_of(model.spec.family)) + "'", names,
                      "engine '" + engine.name + "' cannot run this architecture"});
}

void refuse_cluster(const Engine& engine, const ClusterSpec& cluster, const std::string& file,
                    const std::string& place, Problems& problems) {
  if (!engine.capabilities.pools.one_host || cluster.gpus() <= cluster.gpus_per_node) return;
  problems.push_back({file, place, std::to_string(cluster.gpus()) + " GPUs on several hosts",
                      "one host, of " + std::to_string(cluster.gpus_per_node) + " GPUs",
                      "engine '" + engine.name +
                          "': the rollout's servers read the memory of ranks on their own host"});
}

void refuse_adapters(const Engine& engine, const ModelSpec& model, const Lora& lora,
                     const std::string& file, const std::string& place, Problems& problems) {
  if (!lora.used()) return;
  const std::string found = "adapters of rank " + std::to_string(lora.rank);
  const Capabilities& can = engine.capabilities;
  if (!can.lora) {
    problems.push_back({file, place, found, "none: it trains and serves every weight",
                        "engine '" + engine.name + "' cannot run them"});
    return;
  }
  const std::string why = can.adapters == nullptr ? std::string() : can.adapters(model, lora);
  if (why.empty()) return;
  problems.push_back(
      {file, place, found, "adapters that engine '" + engine.name + "' trains: " + why, {}});
}

void refuse_prediction_layers(const Engine& engine, const ModelSpec& model, MtpUse use,
                              const std::string& file, const std::string& place,
                              Problems& problems) {
  if (use == MtpUse::left_out) return;
  const std::string found = "layers of multi-token prediction " + std::string(name_of(use));
  if (model.mtp_layers == 0) {
    problems.push_back({file, place, found, std::string(name_of(MtpUse::left_out)),
                        "the model has none (num_nextn_predict_layers of its config.json)"});
  } else if (!engine.capabilities.prediction_layers) {
    problems.push_back({file, place, found, std::string(name_of(MtpUse::left_out)),
                        "engine '" + engine.name + "' has no such layers"});
  }
}

void refuse_type(const Engine& engine, DType type, const std::string& file,
                 const std::string& place, Problems& problems) {
  const std::vector<DType>& known = engine.capabilities.params;
  if (std::find(known.begin(), known.end(), type) != known.end()) return;
  std::string names;
  for (const DType each : known) {
    names += (names.empty() ? "" : " or ") + std::string(name_of(each));
  }
  problems.push_back({file, place, std::string(name_of(type)), names,
                      "engine '" + engine.name + "' does not hold weights of this type"});
}

}  // namespace tessera
