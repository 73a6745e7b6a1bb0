// tessera list: the names that other commands take, from the tables that those commands read.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/names.h"
#include "cost_models/calibration.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/layout/reshard_transport.h"
#include "planner/engines/engine.h"
#include "planner/interop/export.h"
#include "planner/request/objective.h"
#include "planner/request/settings.h"
#include "simulator/rules/rules.h"

namespace tessera {
namespace {

/// A table of texts: every row has as many cells as the header.
struct Listing {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

std::string_view meaning_of(Role role) {
  switch (role) {
    case Role::actor:
      return "the model that is trained";
    case Role::rollout:
      return "the actor's weights in the layout that generates responses";
    case Role::critic:
      return "estimates the value of every token (PPO); trained";
    case Role::reference:
      return "the frozen starting point, for the KL divergence";
    case Role::reward:
      return "the reward model; a reward by rule needs no GPUs";
  }
  return "";
}

std::string_view meaning_of(Field field) {
  switch (field) {
    case Field::gpus:
      return "GPUs of the role";
    case Field::tp:
      return "tensor parallel degree";
    case Field::pp:
      return "pipeline stages";
    case Field::dp:
      return "replicas, those that FSDP shards included";
    case Field::zero:
      return "ZeRO stage, 0 to 3 (0 or 3 for roles that are not trained)";
    case Field::tokens:
      return "most tokens of a micro-batch, of all calls without update_tokens";
    case Field::max_sequences:
      return "sequences that a replica decodes at once";
    case Field::cp:
      return "context parallel degree";
    case Field::vpp:
      return "chunks of layers per pipeline rank";
    case Field::ep:
      return "expert parallel degree";
    case Field::etp:
      return "parts that each expert is cut into";
    case Field::dp_shard:
      return "FSDP shards of each replica";
    case Field::recompute:
      return "activations that the backward pass makes again";
    case Field::offload:
      return "what waits in host memory";
    case Field::context:
      return "how context parallelism runs";
    case Field::sequence_parallel:
      return "whether what tp replicates is cut along the sequence";
    case Field::head_layers:
      return "layers that the cut counts for the last stage's head";
    case Field::update_tokens:
      return "most tokens of an update's micro-batch";
  }
  return "";
}

Listing engines() {
  Listing list{{"engine", "version", "roles", "models"}, {}};
  for (const std::string& name : engine_names()) {
    const Engine& engine = engine_named(name);
    const Capabilities& can = engine.capabilities;
    std::vector<std::string> families;
    for (const ModelFamily family : can.families) families.emplace_back(name_of(family));
    const bool every = can.roles.size() == kEveryRole.size();
    list.rows.push_back({name, engine.version.empty() ? TESSERA_VERSION : engine.version,
                         every ? "every role" : names_of(can.roles),
                         families.empty() ? "every family" : joined(families)});
  }
  list.rows.push_back({std::string(kAnyEngine), "-", "every role", "every family"});
  return list;
}

Listing roles() {
  Listing list{{"role", "meaning"}, {}};
  for (const Role role : kEveryRole) {
    list.rows.push_back({std::string(name_of(role)), std::string(meaning_of(role))});
  }
  return list;
}

Listing fields() {
  Listing list{{"field", "values", "roles", "meaning"}, {}};
  for (const Field field : every_field()) {
    std::vector<Role> takes;
    std::copy_if(kEveryRole.begin(), kEveryRole.end(), std::back_inserter(takes),
                 [&](Role role) { return applies(role, field); });
    std::vector<std::string> words;
    for (const std::string_view word : words_of(field)) words.emplace_back(word);
    const bool every = takes.size() == kEveryRole.size();
    list.rows.push_back({std::string(name_of(field)), words.empty() ? "a number" : joined(words),
                         every ? "every role" : names_of(takes), std::string(meaning_of(field))});
  }
  list.rows.push_back({"gpu", "a GPU type", "every role", "where the cluster has several types"});
  return list;
}

Listing objectives() {
  Listing list{{"objective"}, {}};
  for (const std::string& name : objective_names()) list.rows.push_back({name});
  return list;
}

Listing targets() {
  Listing list{{"target", "writes"}, {}};
  for (const ExportTarget& target : every_export_target()) {
    list.rows.push_back({std::string(target.name), std::string(target.meaning)});
  }
  return list;
}

Listing transports() {
  Listing list{{"transport"}, {}};
  for (const std::string& name : transport_names()) list.rows.push_back({name});
  return list;
}

/// The presets of a kind, each with what `about` reads out of it. A file that cannot be read is
/// listed with its first problem.
Listing presets(
    const char* kind, const char* extension, std::vector<std::string> header,
    const std::function<std::vector<std::string>(const std::string&, Problems&)>& about) {
  Listing list{std::move(header), {}};
  for (const std::string& name : preset_names(kind, extension)) {
    Problems problems;
    std::vector<std::string> row{name};
    for (std::string& cell : about(name, problems)) row.push_back(std::move(cell));
    if (!problems.empty()) row = {name, to_string(problems.front())};
    row.resize(list.header.size());
    list.rows.push_back(std::move(row));
  }
  return list;
}

std::string text(const char* format, double value) {
  char out[48];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

Listing models() {
  return presets("models", "", {"model", "family", "parameters"},
                 [](const std::string& name, Problems& problems) -> std::vector<std::string> {
                   const auto model = read_model_spec(name, problems);
                   if (!model) return {};
                   const auto count = static_cast<double>(parameter_count(*model));
                   return {std::string(name_of(model->family)),
                           count < 1e8 ? text("%.2f M", count / 1e6) : text("%.2f B", count / 1e9)};
                 });
}

/// An engine that refuses every preset of a family does not run it.
bool can_run(const Engine& engine, ModelFamily family, Role role,
             const std::vector<ModelSpec>& presets) {
  const std::vector<ModelFamily>& known = engine.capabilities.families;
  const auto refused = [&](const ModelSpec& model) {
    return engine.capabilities.model != nullptr && !engine.capabilities.model(model).empty();
  };
  return runs(engine, role) &&
         (known.empty() || std::find(known.begin(), known.end(), family) != known.end()) &&
         (presets.empty() || !std::all_of(presets.begin(), presets.end(), refused));
}

/// What can be done with each family: which jobs of other programs are written for it, and what
/// Tessera's own executor runs. Every one is planned and priced.
Listing families() {
  Listing list{{"family", "presets", "exported to", "trained here", "generated here"}, {}};
  std::map<ModelFamily, std::vector<ModelSpec>> presets;
  for (const std::string& name : preset_names("models", "")) {
    Problems unread;
    if (const auto model = read_model_spec(name, unread)) presets[model->family].push_back(*model);
  }
  const Engine& own = engine_named(kOwnEngine);
  const auto yes = [](bool can) { return std::string(can ? "yes" : "-"); };
  for (const ModelFamily family : kEveryFamily) {
    const std::vector<ModelSpec>& known = presets[family];
    std::vector<std::string> targets;
    for (const std::string& name : engine_names()) {
      const Engine& engine = engine_named(name);
      const bool any = can_run(engine, family, Role::actor, known) ||
                       can_run(engine, family, Role::rollout, known);
      if (any && !engine.generation) targets.push_back(name);
    }
    list.rows.push_back({std::string(name_of(family)), std::to_string(known.size()),
                         joined(targets), yes(can_run(own, family, Role::actor, known)),
                         yes(can_run(own, family, Role::rollout, known))});
  }
  return list;
}

Listing clusters() {
  return presets("clusters", ".yaml", {"cluster", "GPUs", "nodes", "type"},
                 [](const std::string& name, Problems& problems) -> std::vector<std::string> {
                   const auto cluster = read_cluster_spec(name, problems);
                   if (!cluster) return {};
                   std::vector<std::string> types;
                   for (const NodeGroup& group : cluster->groups)
                     types.push_back(group.device.name);
                   return {std::to_string(cluster->gpus()), std::to_string(cluster->nodes),
                           types.empty() ? cluster->device.name : joined(types)};
                 });
}

Listing workloads() {
  return presets("workloads", ".yaml", {"workload", "algorithm", "prompts", "samples", "tokens"},
                 [](const std::string& name, Problems& problems) -> std::vector<std::string> {
                   const auto work = read_workload(name, problems);
                   if (!work) return {};
                   return {work->algorithm, std::to_string(work->prompts_per_step),
                           std::to_string(work->samples_per_prompt),
                           std::to_string(work->prompt_tokens) + " + " +
                               text("%.0f", work->response_tokens.mean) + ", at most " +
                               std::to_string(work->response_tokens.max)};
                 });
}

Listing calibrations() {
  return presets("calibrations", ".json", {"calibration", "device"},
                 [](const std::string& name, Problems& problems) -> std::vector<std::string> {
                   const auto calibration = find_calibration(name, problems);
                   if (!calibration) return {};
                   return {calibration->device};
                 });
}

Listing rules() {
  return presets("rules", ".json", {"profile", "rules"},
                 [](const std::string& name, Problems& problems) -> std::vector<std::string> {
                   const auto profile = read_rules(name, problems);
                   if (!profile) return {};
                   return {std::to_string(profile->rules.size())};
                 });
}

Listing runs() {
  return presets("runs", ".yaml", {"run configuration"},
                 [](const std::string&, Problems&) { return std::vector<std::string>{}; });
}

struct Kind {
  const char *name, *meaning;
  Listing (*list)();
};
constexpr Kind kKinds[] = {
    {"models", "presets of --model, --critic and --reward", models},
    {"families", "architectures of models, and what runs them", families},
    {"clusters", "presets of --cluster", clusters},
    {"workloads", "presets of --workload", workloads},
    {"runs", "presets of run --config", runs},
    {"calibrations", "presets of --calibration", calibrations},
    {"rules", "presets of explain --rules", rules},
    {"engines", "values of --engine", engines},
    {"roles", "ROLE in --fix and --vary", roles},
    {"fields", "FIELD in --fix and --vary", fields},
    {"objectives", "values of --objective", objectives},
    {"targets", "values of export --to", targets},
    {"transports", "values of plan and run --reshard-transport", transports},
};

Listing kinds() {
  Listing list{{"kind", "names"}, {}};
  for (const Kind& kind : kKinds) list.rows.push_back({kind.name, kind.meaning});
  return list;
}

/// Columns as wide as their longest cell, but for the last.
void print(const Listing& list) {
  std::vector<std::size_t> widths(list.header.size());
  std::vector<std::vector<std::string>> lines{list.header};
  lines.insert(lines.end(), list.rows.begin(), list.rows.end());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out += std::string(widths[i] - line[i].size() + 2, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    std::printf("%s\n", out.c_str());
  }
}

void print_json(const Listing& list) {
  Node root = list_node();
  for (const auto& row : list.rows) {
    Node each = map_node();
    for (std::size_t i = 0; i < row.size(); ++i) {
      add(each, list.header[i], node_of(std::string_view(row[i])));
    }
    root.items.push_back(std::move(each));
  }
  std::printf("%s", json_text(root).c_str());
}

struct ListOptions {
  std::string kind;
  bool json = false;
};

}  // namespace

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "List presets, engines, fields and other names");
  auto options = std::make_shared<ListOptions>();
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) known.emplace_back(kind.name);
  command->add_option("kind", options->kind, "What to list; without it the kinds are listed")
      ->check(CLI::IsMember(known));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const auto* const kind =
        std::find_if(std::begin(kKinds), std::end(kKinds),
                     [&](const Kind& each) { return each.name == options->kind; });
    const Listing list = kind == std::end(kKinds) ? kinds() : kind->list();
    options->json ? print_json(list) : print(list);
  });
}

}  // namespace tessera
