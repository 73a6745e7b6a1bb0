#include "planner/interop/config/imported_recompute.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "planner/interop/config/recompute_modules.h"

namespace tessera {
namespace {

template <class Words>
std::string listed(const Words& words) {
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : ", ") + std::string(word);
  return "[" + all + "]";
}

}  // namespace

std::vector<std::string> words_of(const Node* node) {
  if (node == nullptr) return {};
  std::vector<std::string> words;
  if (node->is(Node::Kind::string)) {  // Hydra's "[a, b]" as an override has it, or one word
    std::string word;
    for (const char c : node->text + ",") {
      if (c == ',') {
        if (!word.empty()) words.push_back(std::exchange(word, {}));
      } else if (std::string_view("[]'\" ").find(c) == std::string_view::npos) {
        word += c;
      }
    }
    return words;
  }
  for (const Node& item : node->items) words.push_back(item.text);
  return words;
}

Recompute selective_of(const std::vector<std::string>& modules, const ModelSpec& model,
                       std::vector<std::string>& notes) {
  const std::vector<std::string> stated =
      modules.empty() ? std::vector<std::string>{"core_attn"} : modules;
  const std::vector<std::string_view> counted = recompute_modules(model);
  const auto has = [&](std::string_view module) {
    const bool whole = module == "moe_act" && std::count(stated.begin(), stated.end(), "moe") > 0;
    return whole || std::count(stated.begin(), stated.end(), module) > 0;
  };
  const bool any = std::any_of(counted.begin(), counted.end(), has);
  const bool alike =
      std::all_of(counted.begin(), counted.end(), has) &&
      std::all_of(stated.begin(), stated.end(), [&](const std::string& module) {
        return module == "core_attn" || std::count(counted.begin(), counted.end(), module) > 0;
      });
  if (!alike) {
    notes.push_back(
        "recompute_modules " + listed(stated) + " is priced as " +
        (any ? "selective recomputation, which is " + listed(counted) : "no recomputation") +
        ": plans of this model know no other modules.");
  }
  return any ? Recompute::selective : Recompute::none;
}

}  // namespace tessera
