// Which model a name in a configuration means, and on which GPU types an imported plan lies.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "planner/interop/config/imported.h"

namespace tessera {
namespace {

// "meta-llama/Llama-3.1-8B-Instruct" and "llama3.1-8b" both give "llama318b".
std::string bare_name(std::string_view name) {
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  const auto slash = name.rfind('/');
  if (slash != name.npos) name.remove_prefix(slash + 1);
  std::string lower = lower_case(name);
  static constexpr std::array<std::string_view, 14> kDecorations{"skywork-reward-v2-",
                                                                 "skywork-reward-",
                                                                 "-instruct",
                                                                 "-chat",
                                                                 "-base",
                                                                 "-hf",
                                                                 "meta-",
                                                                 "-it",
                                                                 "-thinking",
                                                                 "-2507",
                                                                 "-2407",
                                                                 "-bf16",
                                                                 "-math",
                                                                 "-coder"};
  for (const std::string_view word : kDecorations) {
    const auto at = lower.find(word);
    if (at != lower.npos) lower.erase(at, word.size());
  }
  std::erase_if(lower, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return lower;
}

struct Alike {
  std::string_view name, preset;  // bare
};

// Models with the shapes of a preset (their cards and config.json at huggingface.co).
// Mistral 7B's earlier versions have another vocabulary.
constexpr std::array<Alike, 40> kAlike{{
    {"mistral7bv03", "mistral7b"},
    {"mixtral8x7bv01", "mixtral8x7b"},
    {"mixtral8x22bv01", "mixtral8x22b"},
    {"qwen205b", "qwen2505b"},
    {"qwen215b", "qwen2515b"},
    {"qwen272b", "qwen2572b"},
    {"llama38b", "llama318b"},
    {"llama370b", "llama3170b"},
    {"fsfairxllama3rm", "llama318b"},
    {"deepseekr1", "deepseekv3"},
    {"deepseekr1distillqwen7b", "qwen257b"},
    {"deepseekr1distillqwen14b", "qwen2514b"},
    {"deepseekr1distillqwen32b", "qwen2532b"},
    {"deepseekr1distillllama8b", "llama318b"},
    {"deepseekr1distillllama70b", "llama3170b"},
    {"phi3mini4k", "phi3mini"},
    {"olmo211247b", "olmo27b"},
    {"olmo2112413b", "olmo213b"},
    {"olmo2032532b", "olmo232b"},
    {"mimo7brl", "mimo7b"},
    {"hy3preview", "hy3"},
    {"nemotronh8b8k", "nemotronh8b"},
    {"nvidianemotron3nano30ba3b", "nemotron3nano30ba3b"},
    {"nvidianemotron3super120ba12b", "nemotron3super120ba12b"},
    {"nvidianemotron3ultra550ba55b", "nemotron3ultra550ba55b"},
    {"llama4scout17b16e", "llama4scout"},
    {"llama4maverick17b128e", "llama4maverick"},
    {"deepseekv32exp", "deepseekv32"},
    {"glm51", "glm5"},
    {"olmo310257b", "olmo37b"},
    {"olmo3112532b", "olmo332b"},
    {"olmo37bbase", "olmo37b"},
    {"deepseekv4flashbase", "deepseekv4flash"},
    {"deepseekv4probase", "deepseekv4pro"},
    {"minimaxm140k", "minimaxm1"},
    {"minimaxm180k", "minimaxm1"},
    {"ernie4503bpt", "ernie4503b"},
    {"ernie4521ba3bpt", "ernie4521ba3b"},
    {"glm49b0414", "glm49b"},
    {"olmoe1b7b0924", "olmoe1b7b"},
}};

// The preset that a hub name or a folder of that name means; empty = none.
std::string preset_of(const std::string& name) {
  std::string bare = bare_name(name);
  if (bare.empty()) return {};
  for (const Alike& alike : kAlike) {
    if (bare == alike.name) bare = alike.preset;
  }
  for (const std::string& preset : preset_names("models", "")) {
    if (bare_name(preset) == bare) return preset;
  }
  return {};
}

}  // namespace

void state_gpu_types(Plan& plan) {
  if (plan.cluster.groups.empty()) return;
  for (RolePlan& role : plan.roles) {
    role.gpu_types = types_of(plan.cluster, view_of(plan.cluster, role.ranks));
  }
}

std::optional<ModelSource> find_model(const std::string& name, const ConfigValues& config,
                                      const std::string& key, std::vector<std::string>& notes,
                                      Problems& problems) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(name, ignored);
  if (exists) {
    if (auto spec = read_model_spec(name, problems)) return ModelSource{*std::move(spec), name, ""};
    return std::nullopt;
  }
  if (const std::string preset = preset_of(name); !preset.empty()) {
    auto spec = read_model_spec(preset, problems);
    if (!spec) return std::nullopt;
    if (preset != name) notes.push_back("'" + name + "' is planned as the preset " + preset + ".");
    return ModelSource{*std::move(spec), name, ""};
  }
  const auto value = config.values.find(key);
  problems.push_back({config.file, value == config.values.end() ? "" : value->second.place,
                      key + " = '" + name.substr(0, 200) + "'",
                      "a model's folder, its config.json or a preset",
                      "name the folder with --model, --critic or --reward"});
  return std::nullopt;
}

}  // namespace tessera
