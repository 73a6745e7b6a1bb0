#include "cost_models/spec/workload.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/spec/length_table.h"
#include "cost_models/spec/preset_algorithms.h"
#include "cost_models/spec/spec_document.h"

namespace tessera {
namespace {

// What a dataflow may name: every phase but those around its calls.
constexpr auto kCallPhases = [] {
  constexpr std::array kAround{Phase::load, Phase::reshard, Phase::save_checkpoint};
  std::array<Phase, kEveryPhase.size() - kAround.size()> calls{};
  std::size_t count = 0;
  for (const Phase phase : kEveryPhase) {
    if (std::find(kAround.begin(), kAround.end(), phase) == kAround.end()) calls[count++] = phase;
  }
  return calls;
}();
constexpr std::array kEveryKind{CallKind::generate, CallKind::infer, CallKind::train,
                                CallKind::compute};
constexpr std::array kEveryKlPlace{KlPlace::none, KlPlace::loss, KlPlace::reward};
constexpr Whole kTokens{.least = 1, .most = std::int64_t{1} << 30};
constexpr Real kVariation{.least = 0, .most = 100};  // of lengths: deviation over mean
constexpr Real kImages{.least = 0, .most = 1 << 10, .above = true};  // of a prompt
constexpr Whole kEpochs{.least = 1, .most = 1 << 10};
constexpr Whole kSequences{.least = 1, .most = std::int64_t{1} << 30};

/// "ppo", "grpo", or a list of calls; returns whether the list was given.
bool read_algorithm(ObjectReader& reader, Workload& workload) {
  const Node* const node = reader.find("algorithm");
  if (node != nullptr && node->is(Node::Kind::list)) {
    workload.algorithm = "custom";
    workload.dataflow = dataflow_from(reader, "algorithm");
    return true;
  }
  if (node != nullptr && node->is(Node::Kind::string) && is_preset_algorithm(node->text)) {
    workload.algorithm = node->text;
  } else {
    reader.refuse("algorithm", "ppo, grpo, or a list of calls",
                  "ppo has a critic, grpo none; estimators and losses are the run file's "
                  "(algorithm.adv_estimator)");
  }
  return false;
}

/// A table beside the workload's file; `max` may state a longer limit than was reached.
void read_table(ObjectReader& given, const std::string& file, LengthSpec& lengths,
                Problems& problems) {
  std::string name;
  given.required("csv", name);
  std::int64_t limit = 0;
  given.optional("max", limit, kTokens);
  given.refuse_unknown_keys();
  if (name.empty()) return;
  const auto table = read_length_table(std::filesystem::path(file).parent_path() / name, problems);
  if (!table) return;
  lengths = *table;
  if (limit > 0 && limit < lengths.max) {
    given.refuse("max", "at least the table's longest, " + std::to_string(lengths.max));
  }
  lengths.max = std::max(lengths.max, limit);
}

/// A plan's quantiles: ascending, and none beyond max.
void read_quantiles(ObjectReader& given, LengthSpec& lengths) {
  if (!given.has("quantiles")) return;
  given.list("quantiles", lengths.quantiles, kTokens);
  const auto& sorted = lengths.quantiles;
  if (sorted.empty() || sorted.size() > kMostQuantiles ||
      !std::is_sorted(sorted.begin(), sorted.end()) || sorted.back() > lengths.max) {
    given.refuse("quantiles",
                 "1 to " + std::to_string(kMostQuantiles) + " ascending lengths, none above max");
  }
}

void read_lengths(ObjectReader& reader, LengthSpec& lengths, bool resolved, Problems& problems) {
  auto given = reader.object("response_tokens");
  if (!given) return;
  if (!resolved && given->find("csv") != nullptr) {
    return read_table(*given, reader.file(), lengths, problems);
  }
  given->required("max", lengths.max, kTokens);
  if (resolved) {
    given->required("mean", lengths.mean, kAboveZero);
    given->required("cv", lengths.cv, kVariation);
    read_quantiles(*given, lengths);
  } else {
    lengths.mean = static_cast<double>(lengths.max);
    given->optional("mean", lengths.mean, kAboveZero);
    given->optional("cv", lengths.cv, kVariation);
  }
  if (lengths.max > 0 && lengths.mean > static_cast<double>(lengths.max)) {
    given->refuse("mean", "at most max = " + std::to_string(lengths.max));
  }
  given->refuse_unknown_keys();
}

/// One number, which all prompts have, or {mean, max}.
void read_prompts(ObjectReader& reader, Workload& workload) {
  constexpr std::string_view kKey = "prompt_tokens";
  const Node* const node = reader.find(kKey);
  if (node == nullptr || !node->is(Node::Kind::map)) {
    return reader.required(kKey, workload.prompt_tokens, kTokens);
  }
  auto given = reader.object(kKey);
  std::int64_t mean = 0, longest = 0;
  given->required("mean", mean, kTokens);
  given->required("max", longest, kTokens);
  if (longest > 0 && mean > longest) {
    given->refuse("mean", "at most max = " + std::to_string(longest));
  }
  given->refuse_unknown_keys();
  set_prompts(workload, mean, longest);
}

Node prompts_node(const Workload& workload) {
  if (workload.longest_prompt() == workload.prompt_tokens) return node_of(workload.prompt_tokens);
  Node prompts = map_node();
  add(prompts, "mean", node_of(workload.prompt_tokens));
  add(prompts, "max", node_of(workload.prompt_max));
  return prompts;
}

/// None, or {per_prompt, tokens}, whose tokens are among a prompt's.
void read_images(ObjectReader& reader, Workload& workload) {
  auto given = reader.object("images", false);
  if (!given) return;
  given->required("per_prompt", workload.images.per_prompt, kImages);
  given->required("tokens", workload.images.tokens, kTokens);
  const double all = workload.images.per_prompt * static_cast<double>(workload.images.tokens);
  if (all > static_cast<double>(workload.prompt_tokens)) {
    given->refuse("tokens", "at most prompt_tokens = " + std::to_string(workload.prompt_tokens) +
                                " in all images of a prompt, which are among them");
  }
  given->refuse_unknown_keys();
}

void read_version(ObjectReader& reader) {
  std::int64_t version = 1;
  reader.optional("version", version);
  if (version != 1) reader.refuse("version", "version 1", "this tessera reads version 1 only");
}

void read_models(ObjectReader& reader, Workload& workload, bool resolved) {
  auto models = reader.object("models", resolved);
  if (!models) return;
  if (resolved) {
    models->required("critic", workload.critic_model, true);
    models->required("reward", workload.reward_model, true);
  } else {
    models->optional("critic", workload.critic_model);
    models->optional("reward", workload.reward_model);
  }
  models->refuse_unknown_keys();
}

/// A custom dataflow of a file must be a DAG, and its calls must agree with `kl` and the models.
void check_custom(ObjectReader& reader, const Workload& workload) {
  Problems found;
  topological_order(workload.dataflow, reader.file(), found);
  for (const Problem& problem : found) {
    reader.refuse("algorithm", problem.found + " in " + problem.place, problem.expected,
                  problem.hint);
  }
  bool reference = false;
  for (const Call& call : workload.dataflow) reference |= call.role == Role::reference;
  if ((workload.kl != KlPlace::none) && !reference) {
    reader.refuse("kl", "none", "the dataflow has no call of the reference");
  }
}

}  // namespace

std::int64_t longest_sequence(const Workload& workload) {
  return workload.longest_prompt() + workload.response_tokens.max;
}

void set_prompts(Workload& workload, std::int64_t mean, std::int64_t longest) {
  workload.prompt_tokens = mean;
  workload.prompt_max = longest > mean ? longest : 0;
}

Dataflow dataflow_from(ObjectReader& reader, std::string_view key) {
  Dataflow dataflow;
  for (ObjectReader& item : reader.objects(key)) {
    Call call;
    item.required("call", call.phase, kCallPhases);
    item.required("role", call.role, kEveryRole);
    item.required("kind", call.kind, kEveryKind);
    item.list("inputs", call.inputs);
    item.list("outputs", call.outputs);
    item.refuse_unknown_keys();
    dataflow.push_back(std::move(call));
  }
  return dataflow;
}

Workload workload_from(ObjectReader& reader, Defaults defaults) {
  const bool resolved = defaults == Defaults::refused;
  Workload workload;
  bool custom = false;
  if (resolved) {
    reader.required("algorithm", workload.algorithm);
  } else {
    read_version(reader);
    custom = read_algorithm(reader, workload);
  }
  const auto field = [&](std::string_view key, auto& out, auto... range) {
    resolved ? reader.required(key, out, range...) : reader.optional(key, out, range...);
  };
  reader.required("prompts_per_step", workload.prompts_per_step, kSequences);
  field("samples_per_prompt", workload.samples_per_prompt, kSequences);
  read_prompts(reader, workload);
  read_images(reader, workload);
  read_lengths(reader, workload.response_tokens, resolved, reader.problems());
  field("mini_batches", workload.mini_batches, kSequences);
  field("epochs", workload.epochs, kEpochs);
  field("kl", workload.kl, kEveryKlPlace);
  reader.optional("entropy", workload.entropy);
  read_models(reader, workload, resolved);
  reader.refuse_unknown_keys();
  if (workload.prompts_per_step > 0 && workload.prompts_per_step % workload.mini_batches != 0) {
    reader.refuse("mini_batches",
                  "a divisor of prompts_per_step = " + std::to_string(workload.prompts_per_step));
  }
  if (custom) {
    check_custom(reader, workload);
  } else if (!resolved && !workload.algorithm.empty()) {
    workload.dataflow =
        preset_dataflow(workload.algorithm, workload.kl, !workload.reward_model.empty());
  }
  return workload;
}

Node to_node(const Dataflow& dataflow) {
  const auto names = [](const std::vector<std::string>& values) {
    Node list = list_node();
    for (const std::string& value : values) list.items.push_back(node_of(value));
    return list;
  };
  Node list = list_node();
  for (const Call& call : dataflow) {
    Node node = map_node();
    add(node, "call", node_of(name_of(call.phase)));
    add(node, "role", node_of(name_of(call.role)));
    add(node, "kind", node_of(name_of(call.kind)));
    add(node, "inputs", names(call.inputs));
    add(node, "outputs", names(call.outputs));
    list.items.push_back(std::move(node));
  }
  return list;
}

Node to_node(const Workload& workload) {
  Node lengths = map_node();
  add(lengths, "mean", node_of(workload.response_tokens.mean));
  add(lengths, "cv", node_of(workload.response_tokens.cv));
  add(lengths, "max", node_of(workload.response_tokens.max));
  if (!workload.response_tokens.quantiles.empty()) {
    Node quantiles = list_node();
    for (const std::int64_t tokens : workload.response_tokens.quantiles) {
      quantiles.items.push_back(node_of(tokens));
    }
    add(lengths, "quantiles", std::move(quantiles));
  }
  Node models = map_node();
  add(models, "critic", node_of(workload.critic_model));
  add(models, "reward", node_of(workload.reward_model));
  Node node = map_node();
  add(node, "algorithm", node_of(workload.algorithm));
  add(node, "prompts_per_step", node_of(workload.prompts_per_step));
  add(node, "samples_per_prompt", node_of(workload.samples_per_prompt));
  add(node, "prompt_tokens", prompts_node(workload));
  if (workload.images.per_prompt > 0) {
    Node images = map_node();
    add(images, "per_prompt", node_of(workload.images.per_prompt));
    add(images, "tokens", node_of(workload.images.tokens));
    add(node, "images", std::move(images));
  }
  add(node, "response_tokens", std::move(lengths));
  add(node, "mini_batches", node_of(workload.mini_batches));
  add(node, "epochs", node_of(workload.epochs));
  add(node, "kl", node_of(name_of(workload.kl)));
  if (workload.entropy) add(node, "entropy", node_of(true));
  add(node, "models", std::move(models));
  return node;
}

std::optional<Workload> parse_workload(std::string_view text, const std::string& file,
                                       Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_yaml_as_far(text, file, problems);
  if (!document) return std::nullopt;
  ObjectReader reader(*document, problems);
  Workload workload = workload_from(reader, Defaults::allowed);
  if (problems.size() != before) return std::nullopt;
  return workload;
}

std::optional<Workload> read_workload(const std::filesystem::path& where, Problems& problems) {
  const auto file = find_config(where, "workloads", ".yaml", problems);
  if (!file) return std::nullopt;
  const auto text = read_text_file(*file, std::size_t{1} << 20, problems);
  return text ? parse_workload(*text, file->string(), problems) : std::nullopt;
}

}  // namespace tessera
