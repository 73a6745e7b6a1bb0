#include "planner/plan/hub_name.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "cost_models/documents/document.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Hub {
  std::string_view preset, repository;
};

// The repositories of presets whose config.json does not name its own, as published files rarely
// do (_name_or_path).
constexpr auto kHubs = std::to_array<Hub>({
    {"deepseek-llm-7b", "deepseek-ai/deepseek-llm-7b-base"},
    {"deepseek-v2", "deepseek-ai/DeepSeek-V2"},
    {"deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"},
    {"deepseek-v3", "deepseek-ai/DeepSeek-V3"},
    {"gpt-oss-120b", "openai/gpt-oss-120b"},
    {"gpt-oss-20b", "openai/gpt-oss-20b"},
    {"gpt2", "openai-community/gpt2"},
    {"llama2-70b", "meta-llama/Llama-2-70b-hf"},
    {"llama2-7b", "meta-llama/Llama-2-7b-hf"},
    {"llama3.1-405b", "meta-llama/Llama-3.1-405B"},
    {"llama3.1-70b", "meta-llama/Llama-3.1-70B"},
    {"llama3.1-8b", "meta-llama/Llama-3.1-8B"},
    {"llama3.2-1b", "meta-llama/Llama-3.2-1B"},
    {"llama3.2-3b", "meta-llama/Llama-3.2-3B"},
    {"minitron-8b", "nvidia/Minitron-8B-Base"},
    {"mistral-7b", "mistralai/Mistral-7B-v0.3"},
    {"mistral-nemo", "mistralai/Mistral-Nemo-Base-2407"},
    {"mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1"},
    {"mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"},
    {"moonlight-16b-a3b", "moonshotai/Moonlight-16B-A3B"},
    {"nemotron-4-340b", "nvidia/Nemotron-4-340B-Base"},
    {"qwen1.5-moe-a2.7b", "Qwen/Qwen1.5-MoE-A2.7B"},
    {"qwen2-57b-a14b", "Qwen/Qwen2-57B-A14B"},
    {"qwen2-7b", "Qwen/Qwen2-7B"},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B"},
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B"},
    {"qwen2.5-14b", "Qwen/Qwen2.5-14B"},
    {"qwen2.5-32b", "Qwen/Qwen2.5-32B"},
    {"qwen2.5-3b", "Qwen/Qwen2.5-3B"},
    {"qwen2.5-72b", "Qwen/Qwen2.5-72B"},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B"},
    {"qwen2.5-vl-3b", "Qwen/Qwen2.5-VL-3B-Instruct"},
    {"qwen2.5-vl-7b", "Qwen/Qwen2.5-VL-7B-Instruct"},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B"},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B"},
    {"qwen3-14b", "Qwen/Qwen3-14B"},
    {"qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"},
    {"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B"},
    {"qwen3-32b", "Qwen/Qwen3-32B"},
    {"qwen3-4b", "Qwen/Qwen3-4B"},
    {"qwen3-8b", "Qwen/Qwen3-8B"},
});

bool has_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (file->path().extension() == ".safetensors") return true;
  }
  return false;
}

// "organisation/name".
bool is_repository(std::string_view name) {
  const auto slash = name.find('/');
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  };
  return slash != name.npos && slash > 0 && slash + 1 < name.size() && name[0] != '.' &&
         name.find('/', slash + 1) == name.npos && std::all_of(name.begin(), name.end(), plain);
}

std::string named_in(const fs::path& config) {
  Problems ignored;
  const auto text = read_text_file(config, std::size_t{1} << 20, ignored);
  const auto document = text ? parse_json(*text, config.string(), ignored) : std::nullopt;
  const Node* const name = document ? document->root.find("_name_or_path") : nullptr;
  return name != nullptr && is_repository(name->text) ? name->text : std::string{};
}

bool is_preset(const std::string& name) {
  Problems ignored;
  return find_config(name, "models", "", ignored).has_value();
}

bool is_preset_folder(const fs::path& folder, const std::string& name) {
  Problems ignored;
  std::error_code error;
  const auto preset = find_config(name, "models", "", ignored);
  return preset && fs::equivalent(*preset, folder, error);
}

/// The config.json of a folder, a file or a preset, where there is one here.
std::optional<Document> config_of(const ModelSource& model) {
  Problems ignored;
  std::error_code error;
  fs::path file = model.path;
  if (file.empty()) return std::nullopt;
  if (!fs::exists(file, error)) {
    const auto preset = find_config(model.path, "models", "", ignored);
    if (!preset) return std::nullopt;
    file = *preset;
  }
  if (fs::is_directory(file, error)) file /= "config.json";
  const auto text = read_text_file(file, std::size_t{1} << 24, ignored);
  return text ? parse_json(*text, file.string(), ignored) : std::nullopt;
}

const Node* quantization_of(const Document& config) {
  const Node* const stored = config.root.find("quantization_config");
  return stored == nullptr || stored->is(Node::Kind::null) ? nullptr : stored;
}

}  // namespace

std::string hub_name_of_preset(const std::string& preset) {
  Problems ignored;
  if (const auto folder = find_config(preset, "models", "", ignored)) {
    if (std::string named = named_in(*folder / "config.json"); !named.empty()) return named;
  }
  const auto found = std::find_if(kHubs.begin(), kHubs.end(),
                                  [&](const Hub& known) { return known.preset == preset; });
  return std::string(found == kHubs.end() ? std::string_view{} : found->repository);
}

bool has_quantized_weights(const ModelSource& model) {
  // Names that no config.json here speaks for.
  static constexpr auto kQuantized = std::to_array<std::string_view>(
      {"MiniMaxAI/MiniMax-M2", "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528",
       "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3-Base",
       "deepseek-ai/DeepSeek-V3.1", "openai/gpt-oss-120b", "moonshotai/Kimi-K2-Base",
       "moonshotai/Kimi-K2-Instruct", "openai/gpt-oss-120b", "openai/gpt-oss-20b"});
  const std::string weights = weights_of(model);
  if (std::find(kQuantized.begin(), kQuantized.end(), weights) != kQuantized.end()) return true;
  const auto config = config_of(model);
  return config && quantization_of(*config) != nullptr;
}

std::string unlike_executor(const ModelSource& model) {
  const auto config = config_of(model);
  if (!config) return {};
  if (const Node* const stored = quantization_of(*config)) {
    const Node* const method = stored->find("quant_method");
    const bool named = method != nullptr && method->is(Node::Kind::string);
    return "weights stored in " + (named ? method->text : "few bits") +
           " (quantization_config), where its executor reads F32, BF16 and F16";
  }
  for (const char* key : {"attention_dropout", "hidden_dropout", "residual_dropout"}) {
    const Node* const rate = config->root.find(key);
    if (rate != nullptr && rate->number != 0) {
      return std::string(key) + " " + describe(*rate) + ", where its executor drops nothing";
    }
  }
  return {};
}

std::string weights_of(const ModelSource& model) {
  const fs::path path = model.path;
  std::error_code error;
  if (!fs::exists(path, error)) {
    std::string hub = hub_name_of_preset(model.path);
    if (!hub.empty()) return hub;
    const bool here = path.extension() == ".json" || is_preset(model.path);
    return here ? std::string{} : model.path;
  }
  const bool is_folder = fs::is_directory(path, error);
  fs::path folder = fs::absolute(is_folder ? path : path.parent_path(), error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "model/"
  if (has_weights(folder)) return folder.string();
  if (std::string named = named_in(folder / "config.json"); !named.empty()) return named;
  const std::string name = folder.filename().string();
  return is_preset_folder(folder, name) ? hub_name_of_preset(name) : std::string{};
}

}  // namespace tessera
