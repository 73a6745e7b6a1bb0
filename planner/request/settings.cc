#include "planner/request/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kFields = enum_names<Field>({{Field::gpus, "gpus"},
                                            {Field::tp, "tp"},
                                            {Field::pp, "pp"},
                                            {Field::dp, "dp"},
                                            {Field::zero, "zero"},
                                            {Field::tokens, "tokens"},
                                            {Field::max_sequences, "max_sequences"},
                                            {Field::cp, "cp"},
                                            {Field::vpp, "vpp"},
                                            {Field::ep, "ep"},
                                            {Field::etp, "etp"},
                                            {Field::dp_shard, "dp_shard"},
                                            {Field::recompute, "recompute"},
                                            {Field::offload, "offload"},
                                            {Field::context, "context"},
                                            {Field::sequence_parallel, "sequence_parallel"},
                                            {Field::head_layers, "head_layers"},
                                            {Field::update_tokens, "update_tokens"}});
constexpr std::array<std::string_view, 3> kRecomputeWords = {"none", "selective", "full"};
constexpr std::array<std::string_view, 3> kOffloadWords = {"none", "optimizer", "all"};
constexpr std::array<std::string_view, 2> kContextWords = {"ring", "ulysses"};
constexpr std::array<std::string_view, 2> kFlagWords = {"0", "1"};

constexpr auto kEveryField = [] {
  std::array<Field, kFields.pairs.size()> every{};
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = kFields.pairs[i].first;
  return every;
}();

constexpr std::string_view kFile = "--fix";
constexpr std::string_view kGpu = "gpu";  // names a type: no number as the fields

std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (const Role role : kEveryRole) names.emplace_back(name_of(role));
  return names;
}

// "gpus, tp, ..., gpu": what can be fixed of a role.
std::string fields_of(Role role) {
  std::string known;
  for (const auto& [field, name] : kFields.pairs) {
    if (applies(role, field)) known += std::string(name) + ", ";
  }
  return known + std::string(kGpu);
}

// Appends what is wrong with one word.
struct Refusal {
  const std::string& word;
  Problems& problems;

  void operator()(std::string found, std::string expected, std::string hint = {}) const {
    problems.push_back(
        {std::string(kFile), word, std::move(found), std::move(expected), std::move(hint)});
  }
};

void add(Role role, Field field, std::int64_t value, const std::string& text,
         FixedSettings& settings, const Refusal& refuse) {
  const auto [entry, added] = settings.values.emplace(std::pair(role, field), value);
  if (added || entry->second == value) return;
  const auto words = words_of(field);
  refuse(text, "the value it was fixed to before, " +
                   (words.empty() ? std::to_string(entry->second)
                                  : std::string(words[static_cast<std::size_t>(entry->second)])));
}

// A word "ROLE.FIELD=VALUE" in its parts.
struct Parts {
  std::string role, field, value;
};

void read_gpu_type(Role role, const std::string& type, FixedSettings& settings,
                   const Refusal& refuse) {
  if (type.empty()) return refuse("nothing", "a GPU type of the cluster");
  const auto [entry, added] = settings.gpu_types.emplace(role, type);
  if (!added && entry->second != type) {
    refuse(type, "the type it was fixed to before, " + entry->second);
  }
}

void refuse_names(const Parts& parts, std::optional<Role> role, std::optional<Field> field,
                  const Refusal& refuse) {
  if (!role) {
    refuse("role '" + parts.role + "'", "actor, rollout, critic, reference or reward",
           did_you_mean(parts.role, role_names()));
  }
  if (!field) {
    std::string known;
    for (const auto& [value, name] : kFields.pairs) known += std::string(name) + ", ";
    refuse("field '" + parts.field + "'", known + std::string(kGpu),
           did_you_mean(parts.field, kFields.names()));
  }
}

// A field of one of `words`.
void read_named(const Parts& parts, std::optional<Role> role, Field field,
                std::span<const std::string_view> words, FixedSettings& settings,
                const Refusal& refuse) {
  const auto found = std::find(words.begin(), words.end(), parts.value);
  if (found == words.end()) {
    std::string known;
    for (const auto word : words) known += (known.empty() ? "" : ", ") + std::string(word);
    return refuse("'" + parts.value + "'", known,
                  did_you_mean(parts.value, std::vector<std::string>(words.begin(), words.end())));
  }
  if (!role) return;
  if (!applies(*role, field)) {
    return refuse("the field '" + parts.field + "' of " + parts.role, fields_of(*role));
  }
  add(*role, field, found - words.begin(), parts.value, settings, refuse);
}

// A number is refused whether or not its role and field are known.
void read_counted(const Parts& parts, std::optional<Role> role, std::optional<Field> field,
                  FixedSettings& settings, const Refusal& refuse) {
  const std::string& text = parts.value;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool from_zero = field == Field::zero || field == Field::head_layers;
  const std::int64_t least = from_zero ? 0 : 1;
  if (error != std::errc{} || end != text.data() + text.size() || value < least) {
    return refuse("'" + text + "'", "a whole number of at least " + std::to_string(least));
  }
  if (!role || !field) return;
  if (!applies(*role, *field)) {
    return refuse("the field '" + parts.field + "' of " + parts.role, fields_of(*role));
  }
  const bool trains = *role == Role::actor || *role == Role::critic;
  if (*field == Field::zero && !trains && value != 0 && value != 3) {
    return refuse("'" + text + "'", "0 or 3 (fully sharded): " + parts.role + " is not trained");
  }
  add(*role, *field, value, text, settings, refuse);
}

void read_word(const std::string& word, FixedSettings& settings, Problems& problems) {
  const Refusal refuse{word, problems};
  const auto equals = word.find('=');
  const auto dot = word.find('.');
  if (equals != std::string::npos && word.substr(0, equals) == "placement") {
    const std::string placement = word.substr(equals + 1);
    if (placement.find_first_not_of(' ') == std::string::npos) {
      return refuse("nothing", "roles, for example placement='actor+reference | critic'");
    }
    settings.placement = placement;
    return;
  }
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    return refuse("'" + word + "'", "ROLE.FIELD=NUMBER, for example actor.tp=2");
  }
  const Parts parts{word.substr(0, dot), word.substr(dot + 1, equals - dot - 1),
                    word.substr(equals + 1)};
  const auto role = role_from(parts.role);
  if (role && parts.field == kGpu) return read_gpu_type(*role, parts.value, settings, refuse);
  const auto field = kFields.find(parts.field);
  refuse_names(parts, role, field, refuse);
  const auto words = field ? words_of(*field) : std::span<const std::string_view>{};
  if (!words.empty()) return read_named(parts, role, *field, words, settings, refuse);
  read_counted(parts, role, field, settings, refuse);
}

}  // namespace

std::span<const Field> every_field() { return kEveryField; }

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

std::span<const std::string_view> words_of(Field field) {
  if (field == Field::recompute) return kRecomputeWords;
  if (field == Field::offload) return kOffloadWords;
  if (field == Field::context) return kContextWords;
  if (field == Field::sequence_parallel) return kFlagWords;
  return {};
}

std::string_view name_of(Field field) { return kFields[field]; }

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
    const auto names = words_of(key.second);
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
