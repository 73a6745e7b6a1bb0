#include "planner/request/settings.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 18> kFields = {"gpus",
                                                      "tp",
                                                      "pp",
                                                      "dp",
                                                      "zero",
                                                      "tokens",
                                                      "max_sequences",
                                                      "cp",
                                                      "vpp",
                                                      "ep",
                                                      "etp",
                                                      "dp_shard",
                                                      "recompute",
                                                      "offload",
                                                      "context",
                                                      "sequence_parallel",
                                                      "head_layers",
                                                      "update_tokens"};
constexpr std::array<std::string_view, 3> kRecomputeWords = {"none", "selective", "full"};
constexpr std::array<std::string_view, 3> kOffloadWords = {"none", "optimizer", "all"};
constexpr std::array<std::string_view, 2> kContextWords = {"ring", "ulysses"};

// Fields that are named by words rather than counted.
std::span<const std::string_view> words_of_field(Field field) {
  if (field == Field::recompute) return kRecomputeWords;
  if (field == Field::offload) return kOffloadWords;
  if (field == Field::context) return kContextWords;
  return {};
}
constexpr std::string_view kFile = "--fix";
constexpr std::string_view kGpu = "gpu";  // names a type: no number as the fields

std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kRoleCount; ++i) names.emplace_back(name_of(static_cast<Role>(i)));
  return names;
}

std::optional<Field> field_from(std::string_view name) {
  const auto found = std::find(kFields.begin(), kFields.end(), name);
  if (found == kFields.end()) return std::nullopt;
  return static_cast<Field>(found - kFields.begin());
}

// Fields that mean something for a role.
bool applies(Role role, Field field) {
  if (field == Field::max_sequences) return role == Role::rollout;
  if (field == Field::zero || field == Field::sequence_parallel || field == Field::tokens ||
      field == Field::cp || field == Field::vpp || field == Field::dp_shard ||
      field == Field::context || field == Field::head_layers) {
    return role != Role::rollout;
  }
  if (field == Field::recompute || field == Field::update_tokens) {
    return role == Role::actor || role == Role::critic;
  }
  return true;
}

// "gpus, tp, ..., gpu": what can be fixed of a role.
std::string fields_of(Role role) {
  std::string known;
  for (std::size_t field = 0; field < kFields.size(); ++field) {
    if (applies(role, static_cast<Field>(field))) known += std::string(kFields[field]) + ", ";
  }
  return known + std::string(kGpu);
}

template <class Refuse>
void add(Role role, Field field, std::int64_t value, const std::string& text,
         FixedSettings& settings, const Refuse& refuse) {
  const auto [entry, added] = settings.values.emplace(std::pair(role, field), value);
  if (added || entry->second == value) return;
  const auto words = words_of_field(field);
  refuse(text, "the value it was fixed to before, " +
                   (words.empty() ? std::to_string(entry->second)
                                  : std::string(words[static_cast<std::size_t>(entry->second)])));
}

void read_word(const std::string& word, FixedSettings& settings, Problems& problems) {
  const auto refuse = [&](std::string found, std::string expected, std::string hint = {}) {
    problems.push_back(
        {std::string(kFile), word, std::move(found), std::move(expected), std::move(hint)});
  };
  const auto equals = word.find('=');
  const auto dot = word.find('.');
  if (equals != std::string::npos && word.substr(0, equals) == "placement") {
    settings.placement = word.substr(equals + 1);
    return;
  }
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    return refuse("'" + word + "'", "ROLE.FIELD=NUMBER, for example actor.tp=2");
  }
  const std::string role_name = word.substr(0, dot);
  const std::string field_name = word.substr(dot + 1, equals - dot - 1);
  const std::string text = word.substr(equals + 1);
  const auto role = role_from(role_name);
  if (role && field_name == kGpu) {
    if (text.empty()) return refuse("nothing", "a GPU type of the cluster");
    const auto [entry, added] = settings.gpu_types.emplace(*role, text);
    if (!added && entry->second != text) {
      refuse(text, "the type it was fixed to before, " + entry->second);
    }
    return;
  }
  const auto field = field_from(field_name);
  const auto names = role_names();
  const std::vector<std::string> fields(kFields.begin(), kFields.end());
  if (!role) {
    refuse("role '" + role_name + "'", "actor, rollout, critic, reference or reward",
           did_you_mean(role_name, names));
  }
  if (!field) {
    std::string known;
    for (const std::string& name : fields) known += name + ", ";
    known += kGpu;
    refuse("field '" + field_name + "'", known, did_you_mean(field_name, fields));
  }
  if (field && !words_of_field(*field).empty()) {
    const auto words = words_of_field(*field);
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) {
      std::string known;
      for (const auto word : words) known += (known.empty() ? "" : ", ") + std::string(word);
      return refuse("'" + text + "'", known,
                    did_you_mean(text, std::vector<std::string>(words.begin(), words.end())));
    }
    if (role && applies(*role, *field)) {
      return add(*role, *field, found - words.begin(), text, settings, refuse);
    }
    if (role) refuse("the field '" + field_name + "' of " + role_name, fields_of(*role));
    return;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool from_zero =
      field == Field::zero || field == Field::head_layers || field == Field::sequence_parallel;
  const std::int64_t least = from_zero ? 0 : 1;
  if (error != std::errc{} || end != text.data() + text.size() || value < least) {
    return refuse("'" + text + "'", "a whole number of at least " + std::to_string(least));
  }
  if (!role || !field) return;
  if (!applies(*role, *field)) {
    return refuse("the field '" + field_name + "' of " + role_name, fields_of(*role));
  }
  if (*field == Field::sequence_parallel && value > 1) return refuse("'" + text + "'", "0 or 1");
  const bool trains = *role == Role::actor || *role == Role::critic;
  if (*field == Field::zero && !trains && value != 0 && value != 3) {
    return refuse("'" + text + "'", "0 or 3 (fully sharded): " + role_name + " is not trained");
  }
  add(*role, *field, value, text, settings, refuse);
}

}  // namespace

std::string_view name_of(Field field) { return kFields[static_cast<std::size_t>(field)]; }

std::optional<std::int64_t> FixedSettings::find(Role role, Field field) const {
  const auto found = values.find({role, field});
  if (found == values.end()) return std::nullopt;
  return found->second;
}

bool FixedSettings::allows(Role role, Field field, std::int64_t value) const {
  return find(role, field).value_or(value) == value;
}

FixedSettings parse_settings(std::span<const std::string> words, Problems& problems) {
  FixedSettings settings;
  for (const std::string& word : words) read_word(word, settings, problems);
  return settings;
}

std::vector<std::string> words_of(const FixedSettings& settings) {
  std::vector<std::string> words;
  for (const auto& [key, value] : settings.values) {
    const auto names = words_of_field(key.second);
    words.push_back(std::string(name_of(key.first)) + "." + std::string(name_of(key.second)) + "=" +
                    (names.empty() ? std::to_string(value)
                                   : std::string(names[static_cast<std::size_t>(value)])));
  }
  for (const auto& [role, type] : settings.gpu_types) {
    words.push_back(std::string(name_of(role)) + "." + std::string(kGpu) + "=" + type);
  }
  if (!settings.placement.empty()) words.push_back("placement=" + settings.placement);
  return words;
}

}  // namespace tessera
