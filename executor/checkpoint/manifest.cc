// The manifest of a checkpoint, written and read.
#include <array>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/checkpoint/data_nodes.h"
#include "executor/checkpoint/run_checkpoint.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kLargestManifest = std::size_t{64} << 20;
constexpr std::array kWeightTypes = {DType::fp32, DType::bf16, DType::fp16};

Node node_of_role(const CheckpointRole& role) {
  Node node = map_node();
  add(node, "model", node_of(role.model));
  add(node, "parameters", node_of(role.parameters));
  add(node, "dtype", node_of(name_of(role.dtype)));
  add(node, "optimizer_steps", node_of(role.optimizer_steps));
  add(node, "layout", node_of(role.layout));
  if (!role.base.empty()) add(node, "base", node_of(role.base));
  if (role.adapter_scale != 0) add(node, "adapter_scale", node_of(role.adapter_scale));
  return node;
}

struct RuleCount {
  const char* key;
  std::int64_t RuleState::*count;
};
constexpr std::array kRuleCounts = {RuleCount{"prompts_skipped", &RuleState::prompts_skipped},
                                    RuleCount{"warnings", &RuleState::warnings},
                                    RuleCount{"lr_lowered", &RuleState::lr_lowered},
                                    RuleCount{"roll_backs", &RuleState::roll_backs},
                                    RuleCount{"pauses", &RuleState::pauses},
                                    RuleCount{"stops", &RuleState::stops},
                                    RuleCount{"not_finite", &RuleState::not_finite},
                                    RuleCount{"skipped_updates", &RuleState::skipped_updates}};

Node node_of_rules(const RuleState& rules) {
  Node node = map_node();
  add(node, "lr_scale", node_of(rules.lr_scale));
  for (const auto& [key, count] : kRuleCounts) add(node, key, node_of(rules.*count));
  return node;
}

/// Older checkpoints have none: no rule had done anything.
RuleState read_rules(ObjectReader& root) {
  RuleState rules;
  auto reader = root.object("rules", false);
  if (!reader) return rules;
  reader->required("lr_scale", rules.lr_scale, Real{.least = 0, .most = 1, .above = true});
  for (const auto& [key, count] : kRuleCounts) {
    reader->required(key, rules.*count, kNotNegative);
  }
  return rules;
}

Node node_of_manifest(const CheckpointManifest& manifest) {
  Node root = map_node();
  add(root, "tessera_checkpoint", node_of(kVersion));
  add(root, "step", node_of(manifest.step));
  add(root, "created", node_of(manifest.created));
  add(root, "tessera_version", node_of(manifest.tessera_version));
  Node roles = map_node();
  for (const auto& [name, role] : manifest.roles) add(roles, name, node_of_role(role));
  add(root, "roles", std::move(roles));
  add(root, "kl_coef", node_of(manifest.kl_coef));
  add(root, "prompts_taken", node_of(manifest.prompts_taken));
  add(root, "rules", node_of_rules(manifest.rules));
  add(root, "owes_validation", node_of(manifest.owes_validation));
  add(root, "sampling_seed", node_of(manifest.seed));
  add(root, "data", node_of_data(manifest.data));
  Node lengths = list_node();
  for (const CheckpointLength& length : manifest.lengths) {
    Node node = map_node();
    add(node, "row", node_of(length.row));
    add(node, "mean", node_of(length.mean));
    add(node, "longest", node_of(length.longest));
    lengths.items.push_back(std::move(node));
  }
  add(root, "response_tokens", std::move(lengths));
  Node metrics = map_node();
  for (const auto& [name, value] : manifest.metrics) add(metrics, name, node_of(value));
  add(root, "metrics", std::move(metrics));
  Node files = list_node();
  for (const CheckpointFile& file : manifest.files) {
    Node node = map_node();
    add(node, "name", node_of(file.name));
    add(node, "bytes", node_of(file.bytes));
    add(node, "header_xxh3", node_of(file.header));
    files.items.push_back(std::move(node));
  }
  add(root, "files", std::move(files));
  return root;
}

std::string digest_of(const Node& root) {
  const std::string text = json_text(root);
  return checkpoint_digest(std::as_bytes(std::span(text.data(), text.size())));
}

CheckpointManifest read(ObjectReader& root) {
  CheckpointManifest manifest;
  std::int64_t version = kVersion;
  root.required("tessera_checkpoint", version);
  if (version != kVersion) root.refuse("tessera_checkpoint", "version 1");
  root.required("step", manifest.step, kNotNegative);
  root.required("created", manifest.created, true);
  root.required("tessera_version", manifest.tessera_version, true);
  if (auto roles = root.object("roles")) {
    for (const std::string& name : roles->keys()) {
      auto reader = roles->object(name);
      if (!reader) continue;
      CheckpointRole& role = manifest.roles[name];
      reader->required("model", role.model, true);
      reader->required("parameters", role.parameters, kNotNegative);
      reader->required("dtype", role.dtype, kWeightTypes);
      reader->required("optimizer_steps", role.optimizer_steps, kNotNegative);
      reader->required("layout", role.layout, true);
      reader->optional("base", role.base);  // older checkpoints have neither
      reader->optional("adapter_scale", role.adapter_scale, kFromZero);
    }
  }
  root.required("kl_coef", manifest.kl_coef);
  root.required("prompts_taken", manifest.prompts_taken, kNotNegative);
  manifest.rules = read_rules(root);
  root.optional("owes_validation", manifest.owes_validation);  // older checkpoints have none
  root.required("sampling_seed", manifest.seed);
  manifest.data = read_data(root);
  for (ObjectReader& reader : root.objects("response_tokens", false)) {
    CheckpointLength& length = manifest.lengths.emplace_back();
    reader.required("row", length.row, kNotNegative);
    reader.required("mean", length.mean, Real{.least = 0});
    reader.required("longest", length.longest, Real{.least = 0});
  }
  if (auto metrics = root.object("metrics")) {
    for (const std::string& name : metrics->keys()) {
      metrics->required(name, manifest.metrics[name]);
    }
  }
  for (ObjectReader& reader : root.objects("files")) {
    CheckpointFile& file = manifest.files.emplace_back();
    reader.required("name", file.name);
    reader.required("bytes", file.bytes, kNotNegative);
    reader.required("header_xxh3", file.header);
    if (file.name.find('/') != std::string::npos) reader.refuse("name", "a file of this folder");
  }
  return manifest;
}

/// Whether a file is as the manifest says; only its header is read.
void check_file(const fs::path& folder, const CheckpointFile& stated, Problems& problems) {
  const fs::path path = folder / stated.name;
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error || bytes != stated.bytes) {
    problems.push_back({.file = path.string(),
                        .found = error ? error.message() : std::to_string(bytes) + " bytes",
                        .expected = std::to_string(stated.bytes) + " bytes"});
    return;
  }
  const auto found = describe_file(path, problems);
  if (found && found->header != stated.header) {
    problems.push_back({.file = path.string(),
                        .place = "header",
                        .found = "xxh3 " + found->header,
                        .expected = stated.header});
  }
}

}  // namespace

Node node_of_data(const CheckpointData& data) {
  Node node = map_node();
  add(node, "prompts", node_of(data.prompts));
  add(node, "prompts_per_step", node_of(data.per_step));
  add(node, "first", node_of(data.first));
  add(node, "seed", node_of(data.seed));
  add(node, "shuffle", node_of(data.shuffle));
  add(node, "xxh3", node_of(data.digest));
  return node;
}

CheckpointData read_data(ObjectReader& root) {
  CheckpointData read;
  auto data = root.object("data");
  if (!data) return read;
  data->required("prompts", read.prompts);
  data->required("prompts_per_step", read.per_step);
  data->optional("first", read.first, kNotNegative);  // older checkpoints have none
  data->required("seed", read.seed);
  data->required("shuffle", read.shuffle);
  data->required("xxh3", read.digest, true);
  return read;
}

bool write_manifest(const fs::path& file, const CheckpointManifest& manifest, Problems& problems) {
  Node root = node_of_manifest(manifest);
  add(root, "xxh3", node_of(digest_of(root)));
  return write_file_atomically(file, json_text(root), problems);
}

std::optional<CheckpointManifest> read_manifest(const fs::path& folder, Problems& problems) {
  const std::size_t before = problems.size();
  const fs::path file = folder / kManifestName;
  const auto text = read_text_file(file, kLargestManifest, problems);
  if (!text) return std::nullopt;
  auto document = parse_json(*text, file.string(), problems);
  if (!document) return std::nullopt;
  Node& root = document->root;
  const Node* const stated = root.is(Node::Kind::map) ? root.find("xxh3") : nullptr;
  if (stated == nullptr || root.keys.back() != "xxh3") {
    problems.push_back({.file = file.string(),
                        .found = "no xxh3 at its end",
                        .expected = "a checkpoint's manifest"});
    return std::nullopt;
  }
  const std::string digest = stated->text;
  root.keys.pop_back();
  root.items.pop_back();
  if (digest_of(root) != digest) {
    problems.push_back({.file = file.string(),
                        .place = "xxh3",
                        .found = digest_of(root) + " of what it holds",
                        .expected = digest});
    return std::nullopt;
  }
  ObjectReader reader(*document, problems);
  CheckpointManifest manifest = read(reader);
  for (const CheckpointFile& each : manifest.files) check_file(folder, each, problems);
  if (problems.size() != before) return std::nullopt;
  return manifest;
}

}  // namespace tessera
