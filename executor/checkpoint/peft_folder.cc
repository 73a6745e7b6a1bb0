#include "executor/checkpoint/peft_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/atomic_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "adapter_config.json";
constexpr const char* kTensorsName = "adapter_model.safetensors";
constexpr const char* kPickleName = "adapter_model.bin";
constexpr std::size_t kLargestConfig = std::size_t{16} << 20;
constexpr std::int64_t kLargestRank = 1 << 16;

bool says_nothing(const Node& value) {
  return value.is(Node::Kind::null) ||
         ((value.is(Node::Kind::list) || value.is(Node::Kind::map)) && value.items.empty());
}

/// How adapters began is past, but for beginnings that peft repeats when it reads the folder: those
/// of PiSSA, OLoRA, CorDA and LoftQ take from the base's weights what A and B were given.
void refuse_changed_base(ObjectReader& reader) {
  static constexpr std::array kKept = {"gaussian", "eva", "orthogonal"};
  const Node* const given = reader.find("init_lora_weights");
  if (given == nullptr || given->is(Node::Kind::null) || given->is(Node::Kind::boolean)) return;
  if (given->is(Node::Kind::string) && std::ranges::find(kKept, given->text) != kKept.end()) return;
  reader.refuse(
      "init_lora_weights",
      "true, false, gaussian, eva or orthogonal: adapters beside the base's own weights",
      "peft's save_pretrained writes adapters of the base itself where "
      "path_initial_model_for_weight_conversion is given; init_lora_weights is true then");
}

/// Refuses what makes adapters others than Tessera's.
void refuse_other_kinds(ObjectReader& reader) {
  std::string kind = "LORA", bias = "none";
  reader.optional("peft_type", kind);
  if (kind != "LORA") reader.refuse("peft_type", "LORA");
  reader.optional("bias", bias);
  if (bias != "none") reader.refuse("bias", "none: the model's own biases stay as they are");
  for (const char* key : {"use_rslora", "use_dora", "fan_in_fan_out", "lora_bias", "use_qalora"}) {
    bool set = false;
    reader.optional(key, set);
    if (set) reader.refuse(key, "false: Tessera's adapters add alpha / rank times B A");
  }
  for (const char* key : {"modules_to_save", "rank_pattern", "alpha_pattern", "layers_to_transform",
                          "exclude_modules", "layer_replication", "target_parameters",
                          "trainable_token_indices", "alora_invocation_tokens", "arrow_config"}) {
    const Node* const given = reader.find(key);
    if (given != nullptr && !says_nothing(*given)) {
      reader.refuse(key, "null: adapters of one rank beside whole layers");
    }
  }
}

/// The last parts of the names: peft lists the paths of all modules where it was told all-linear.
/// Whether each layer has them is known from the tensors.
void read_targets(ObjectReader& reader, std::vector<std::string>& targets) {
  const Node* const given = reader.find("target_modules");
  if (given != nullptr && given->is(Node::Kind::string)) {
    if (given->text != "all-linear") {
      reader.refuse("target_modules", "a list of names of modules, or all-linear");
    }
    return;
  }
  reader.list("target_modules", targets);
  if (given != nullptr && given->is(Node::Kind::list) && targets.empty()) {
    reader.refuse("target_modules", "at least one module");
  }
  for (std::string& target : targets) target.erase(0, target.rfind('.') + 1);
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
}

Node number_of(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15
             ? node_of(static_cast<std::int64_t>(value))
             : node_of(value);
}

/// The keys that peft's LoraConfig needs, or would else write a warning about.
std::string config_text(const PeftFolderContents& contents) {
  Node targets = list_node();
  for (const std::string& name : contents.lora.targets) {
    targets.items.push_back(node_of(std::string_view(name)));
  }
  Node config = map_node();
  add(config, "base_model_name_or_path", node_of(std::string_view(contents.base_model)));
  add(config, "bias", node_of(std::string_view("none")));
  add(config, "fan_in_fan_out", node_of(false));
  add(config, "inference_mode", node_of(true));
  add(config, "init_lora_weights", node_of(true));
  add(config, "lora_alpha", number_of(contents.lora.alpha));
  add(config, "lora_dropout", node_of(0.0));
  add(config, "peft_type", node_of(std::string_view("LORA")));
  add(config, "r", node_of(contents.lora.rank));
  add(config, "target_modules", std::move(targets));
  add(config, "task_type", node_of(std::string_view("CAUSAL_LM")));
  add(config, "use_dora", node_of(false));
  add(config, "use_rslora", node_of(false));
  return json_text(config);
}

}  // namespace

std::optional<PeftSettings> read_peft_settings(const fs::path& folder, Problems& problems) {
  const std::size_t before = problems.size();
  const fs::path file = folder / kConfigName;
  const auto text = read_text_file(file, kLargestConfig, problems);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text, file.string(), problems);
  if (!document) return std::nullopt;
  ObjectReader reader(*document, problems);
  if (problems.size() != before) return std::nullopt;
  PeftSettings settings;
  Lora& lora = settings.lora;
  reader.required("r", lora.rank, Whole{.least = 1, .most = kLargestRank});
  reader.required("lora_alpha", lora.alpha, kFromZero);
  read_targets(reader, lora.targets);
  refuse_other_kinds(reader);
  refuse_changed_base(reader);
  const Node* const base = reader.find("base_model_name_or_path");
  if (base != nullptr && base->is(Node::Kind::string)) settings.base_model = base->text;
  if (problems.size() != before) return std::nullopt;
  return settings;
}

std::optional<SafetensorsFile> open_peft_tensors(const fs::path& folder, Problems& problems) {
  const fs::path file = folder / kTensorsName;
  std::error_code error;
  if (!fs::exists(file, error) && fs::exists(folder / kPickleName, error)) {
    problems.push_back({.file = file.string(),
                        .found = "no such file",
                        .expected = "the adapters' tensors",
                        .hint = std::string(kPickleName) +
                                " is pickle and is never opened; save it again with "
                                "save_pretrained(safe_serialization=True)"});
    return std::nullopt;
  }
  return open_safetensors(file, problems);
}

bool check_peft_tensors(const SafetensorsFile& file, const fs::path& folder,
                        const ParameterTable& adapters, Problems& problems) {
  const std::size_t before = problems.size();
  std::map<std::string, const TensorView*> by_name;
  for (const TensorView& view : file.tensors) {
    by_name[view.name] = &view;
    if (adapters.find(view.name)) continue;
    problems.push_back({.file = folder.string(),
                        .place = view.name,
                        .found = "a tensor of no adapter of this model",
                        .expected = "adapters of the matrices that target_modules names"});
  }
  for (const Parameter& row : adapters.rows) {
    const auto found = by_name.find(row.name);
    if (found != by_name.end() && found->second->shape == row.shape) continue;
    problems.push_back({.file = folder.string(),
                        .place = row.name,
                        .found = found == by_name.end() ? "no such tensor" : "another shape",
                        .expected = "A [rank, in] and B [out, rank] of each adapted matrix"});
  }
  return problems.size() == before;
}

bool write_peft_folder(const fs::path& folder, const PeftFolderContents& contents,
                       const TensorSource& source, Problems& problems) {
  const auto fill = [&](const fs::path& partial) {
    return write_tensor_file(partial / kTensorsName, contents.tensors, 0, source, problems) &&
           (contents.tokenizer_from.empty() ||
            copy_tokenizer_files(contents.tokenizer_from, partial, problems)) &&
           write_extra_files(partial, contents.extra_files, problems) &&
           write_file_atomically(partial / kConfigName, config_text(contents), problems);
  };
  return write_folder_atomically(folder, fill, problems);
}

}  // namespace tessera
