#include "cost_models/spec/config/closest_family.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/documents/spelling/edit_distance.h"
#include "cost_models/spec/families.h"

namespace tessera {
namespace {

/// "qwen" of "qwen2_vl".
std::string_view maker(std::string_view name) {
  return name.substr(0, name.find_first_of("_0123456789"));
}

/// The last digits of a name, 0 without any.
int version(std::string_view name) {
  int number = 0, unit = 1;
  bool digits = false;
  for (std::size_t i = name.size(); i > 0 && unit < 1'000'000; --i) {
    const char c = name[i - 1];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number += (c - '0') * unit;
      unit *= 10;
      digits = true;
    } else if (digits) {
      break;
    }
  }
  return number;
}

std::size_t edits(std::string_view a, std::string_view b) {
  return edit_distance(a, b, a.size() + b.size() + 1);
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Takes the words that are alike out of both lists; how many there were.
int take_alike(std::vector<std::string_view>& a, std::vector<std::string_view>& b,
               const auto& alike) {
  int count = 0;
  for (std::size_t i = a.size(); i > 0; --i) {
    const auto found =
        std::ranges::find_if(b, [&](std::string_view word) { return alike(a[i - 1], word); });
    if (found == b.end()) continue;
    b.erase(found);
    a.erase(a.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    ++count;
  }
  return count;
}

bool is_number(std::string_view word) {
  return word.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Smaller is nearer: a word that one of the two lacks counts most, then one with another number,
/// then a number alone ("qwen2_vl" and "qwen2_5_vl"); then the fewest edits, and the nearest
/// number.
auto name_distance(std::string_view asked, std::string_view known) {
  std::vector<std::string_view> a = words_of(asked), b = words_of(known);
  take_alike(a, b, [](std::string_view x, std::string_view y) { return x == y; });
  int apart = 2 * take_alike(a, b, [](std::string_view x, std::string_view y) {
                return maker(x) == maker(y) && !maker(x).empty();
              });
  a.insert(a.end(), b.begin(), b.end());
  for (const std::string_view word : a) apart += is_number(word) ? 1 : 3;
  return std::tuple(apart, edits(asked, known), std::abs(version(asked) - version(known)));
}

using Keys = std::initializer_list<const char*>;

bool states(ObjectReader& config, Keys keys) {
  return std::ranges::any_of(keys, [&](const char* key) {
    const Node* const value = config.find(key);
    return value != nullptr && !value->is(Node::Kind::null);
  });
}

bool is_deepseeks(ExpertKeys keys) {
  return keys == ExpertKeys::deepseek || keys == ExpertKeys::blocks || keys == ExpertKeys::hashed;
}

/// The parts that keys tell of and a family has otherwise, by how much they matter.
int parts_apart(ObjectReader& config, bool vision, const FamilyFacts& facts) {
  const bool routed = states(config, {"n_routed_experts"});
  const bool experts = routed || states(config, {"num_experts", "num_local_experts"});
  const bool mamba = states(config, {"mamba_num_heads", "mamba_n_heads", "mamba_d_state"});
  const auto differs = [](bool stated, bool has) { return stated == has ? 0 : 1; };
  return 4 * differs(states(config, {"kv_lora_rank"}), facts.latent_attention) +
         4 * differs(experts, facts.experts.has_value()) + 4 * differs(mamba, facts.state_space) +
         4 * differs(states(config, {"linear_num_value_heads"}), facts.linear_attention) +
         4 * differs(vision, facts.vision != VisionTower::none) +
         2 * differs(routed, facts.experts && is_deepseeks(facts.experts->keys)) +
         differs(states(config, {"sliding_window", "sliding_window_pattern"}),
                 facts.window != WindowRule::none);
}

}  // namespace

std::string closest_family(const std::string& model_type, const ObjectReader& config) {
  ObjectReader whole = config;
  const bool vision = states(whole, {"vision_config"});
  auto text = whole.object("text_config", false);
  ObjectReader& keys = text ? *text : whole;
  std::string_view named;
  const FamilyFacts* alike = nullptr;
  const auto distance = [&](const FamilyFacts& facts) {
    return std::pair(parts_apart(keys, vision, facts), edits(model_type, name_of(facts.family)));
  };
  for (const ModelFamily family : kEveryFamily) {
    const FamilyFacts& facts = facts_of(family);
    for (const std::string_view name : {name_of(family), facts.alias}) {
      if (name.empty()) continue;
      if (named.empty() || name_distance(model_type, name) < name_distance(model_type, named)) {
        named = name;
      }
    }
    if (alike == nullptr || distance(facts) < distance(*alike)) alike = &facts;
  }
  const bool kin = maker(model_type) == maker(named) ||
                   3 * edits(model_type, named) <= std::max(model_type.size(), named.size());
  return kin ? "the closest by name is '" + std::string(named) + "'"
             : "the closest by its keys is '" + std::string(name_of(alike->family)) + "'";
}

}  // namespace tessera
