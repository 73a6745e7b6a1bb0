// Rule files and verdicts as JSON.
#include <array>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/rules/rules.h"

namespace tessera {
namespace {

template <class Enum, std::size_t N>
constexpr std::array<Enum, N> first() {
  std::array<Enum, N> values{};
  for (std::size_t i = 0; i < N; ++i) values[i] = static_cast<Enum>(i);
  return values;
}

ModelClass model_class_from(ObjectReader& reader) {
  ModelClass result;
  auto range = reader.object("model_class", false);
  if (!range) return result;
  range->optional("least_billion_parameters", result.least, kFromZero);
  range->optional("most_billion_parameters", result.most, kAboveZero);
  if (result.most > 0 && result.most < result.least) {
    range->refuse("most_billion_parameters", "no less than least_billion_parameters");
  }
  range->refuse_unknown_keys();
  return result;
}

Rule rule_from(ObjectReader& reader) {
  Rule rule;
  reader.required("name", rule.name);
  reader.required("metric", rule.metric);
  reader.required("scope", rule.scope, first<RuleScope, 3>());
  reader.required("operator", rule.relation, first<RuleOperator, 4>());
  reader.required("value", rule.value, Real{});
  reader.required("unit", rule.unit, first<RuleUnit, 9>());
  rule.model_class = model_class_from(reader);
  reader.required("source", rule.source);
  reader.required("evidence", rule.evidence, first<RuleEvidence, 3>());
  reader.required("published", rule.published, true);
  reader.required("advice", rule.advice);
  reader.required("action", rule.action, first<RuleAction, 6>());
  reader.required("enabled", rule.enabled);
  reader.optional("after_steps", rule.after_steps, kNotNegative);
  reader.optional("for_steps", rule.for_steps, kPositive);
  if (rule.evidence == RuleEvidence::refuted && rule.enabled) {
    reader.refuse("enabled", "false for a rule whose evidence is refuted",
                  "refuted rules are shown, never acted on");
  }
  reader.refuse_unknown_keys();
  return rule;
}

}  // namespace

std::optional<RuleProfile> parse_rules(std::string_view text, const std::string& file,
                                       Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(text, file, problems);
  if (!document) return std::nullopt;
  ObjectReader reader(*document, problems);
  std::int64_t version = kRulesVersion;
  reader.required("tessera_rules", version);
  if (version != kRulesVersion) {
    reader.refuse("tessera_rules", "version " + std::to_string(kRulesVersion));
  }
  RuleProfile profile;
  reader.required("profile", profile.profile);
  reader.required("note", profile.note, true);
  std::map<std::string, int> names;
  for (ObjectReader& each : reader.objects("rules")) {
    profile.rules.push_back(rule_from(each));
    if (++names[profile.rules.back().name] == 2) {
      each.refuse("name", "a name that no other rule of the file has");
    }
  }
  reader.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  return profile;
}

std::optional<RuleProfile> read_rules(const std::filesystem::path& where, Problems& problems) {
  const auto file = find_config(where, "rules", ".json", problems);
  if (!file) return std::nullopt;
  const auto text = read_text_file(*file, std::size_t{1} << 20, problems);
  return text ? parse_rules(*text, file->string(), problems) : std::nullopt;
}

std::string to_json(const RuleProfile& profile, const std::vector<JudgedRule>& judged) {
  Node rules = list_node();
  for (const auto& [rule, verdict] : judged) {
    Node each = map_node();
    add(each, "name", node_of(rule->name));
    add(each, "metric", node_of(rule->metric));
    add(each, "outcome", node_of(name_of(verdict.outcome)));
    add(each, "would_fail", node_of(verdict.would_fail));
    if (verdict.value) add(each, "value", node_of(*verdict.value));
    if (verdict.limit) add(each, "limit", node_of(*verdict.limit));
    if (verdict.predicted) add(each, "predicted", node_of(*verdict.predicted));
    if (verdict.bound) add(each, "bound", node_of(*verdict.bound));
    add(each, "evidence", node_of(name_of(rule->evidence)));
    add(each, "action", node_of(name_of(rule->action)));
    rules.items.push_back(std::move(each));
  }
  Node root = map_node();
  add(root, "profile", node_of(profile.profile));
  add(root, "rules", std::move(rules));
  return json_text(root);
}

}  // namespace tessera
