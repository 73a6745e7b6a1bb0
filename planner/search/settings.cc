#include "planner/search/settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 7> kFields = {"gpus", "tp",     "pp",           "dp",
                                                     "zero", "tokens", "max_sequences"};
constexpr std::string_view kFile = "--fix";

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
  if (field == Field::zero) return role == Role::actor || role == Role::critic;
  if (field == Field::tokens) return role != Role::rollout;
  return true;
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
  const auto field = field_from(field_name);
  const auto names = role_names();
  const std::vector<std::string> fields(kFields.begin(), kFields.end());
  if (!role) {
    refuse("role '" + role_name + "'", "actor, rollout, critic, reference or reward",
           did_you_mean(role_name, names));
  }
  if (!field) {
    refuse("field '" + field_name + "'", "gpus, tp, pp, dp, zero, tokens or max_sequences",
           did_you_mean(field_name, fields));
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::int64_t least = field == Field::zero ? 0 : 1;
  if (error != std::errc{} || end != text.data() + text.size() || value < least) {
    return refuse("'" + text + "'", "a whole number of at least " + std::to_string(least));
  }
  if (!role || !field) return;
  if (!applies(*role, *field)) {
    return refuse("the field '" + field_name + "' of " + role_name, "a field that it has");
  }
  const auto [entry, added] = settings.values.emplace(std::pair(*role, *field), value);
  if (!added && entry->second != value) {
    refuse(text, "the value it was fixed to before, " + std::to_string(entry->second));
  }
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
    words.push_back(std::string(name_of(key.first)) + "." + std::string(name_of(key.second)) + "=" +
                    std::to_string(value));
  }
  if (!settings.placement.empty()) words.push_back("placement=" + settings.placement);
  return words;
}

}  // namespace tessera
