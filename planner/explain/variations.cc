#include "planner/explain/variations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/infeasible_json.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

constexpr const char* kFile = "--vary";

std::optional<Variation> parse_one(const std::string& word, Problems& problems) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    problems.push_back({kFile, word, "'" + word + "'",
                        "ROLE.FIELD=VALUE,VALUE..., for example rollout.tp=1,2,4", ""});
    return std::nullopt;
  }
  Variation variation{word.substr(0, equals), {}};
  for (std::size_t begin = equals + 1; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    const std::string value = word.substr(begin, end - begin);
    const std::string setting = variation.key + "=" + value;
    if (value.empty()) {
      problems.push_back({kFile, word, "an empty value", "values separated by single commas", ""});
      return std::nullopt;
    }
    if (std::find(variation.words.begin(), variation.words.end(), setting) !=
        variation.words.end()) {
      problems.push_back({kFile, word, "'" + value + "' twice", "every value once", ""});
      return std::nullopt;
    }
    variation.words.push_back(setting);
    begin = end + 1;
  }
  return variation;
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), seconds < 1 ? "%.1f ms" : "%.2f s",
                seconds < 1 ? seconds * 1e3 : seconds);
  return text.data();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// `best`: of all rows; there is one where a row has a plan.
std::string row_text(const VariedPlan& varied, std::size_t width, const Plan* best) {
  std::string line = "  " + joined(varied.words);
  line.resize(std::max(line.size(), width + 2), ' ');
  if (const Infeasible* none = std::get_if<Infeasible>(&varied.outcome)) {
    line +=
        "  no plan: " + (none->reasons.empty() ? std::string("nothing fits") : none->reasons[0]);
    if (!none->nearest_fix.empty()) line += "; nearest fix: " + none->nearest_fix;
    return line + "\n";
  }
  const Plan& plan = std::get<Plan>(varied.outcome);
  std::array<char, 160> text{};
  const auto phase = [&](Phase which) {
    const auto found = plan.prediction.phases_s.find(which);
    return found == plan.prediction.phases_s.end() ? Seconds{} : found->second;
  };
  std::snprintf(text.data(), text.size(), "  %10s %+7.1f %%  %10s %10s %10s  %7.2f GiB  ",
                seconds_text(plan.prediction.step_s).c_str(), 100 * worse_by(*best, priced(plan)),
                seconds_text(phase(Phase::gen)).c_str(),
                seconds_text(phase(Phase::reshard)).c_str(),
                seconds_text(phase(Phase::update_actor)).c_str(), gib(plan.prediction.peak_bytes));
  return line + text.data() + describe_layouts(plan) + "\n";
}

}  // namespace

std::vector<Variation> parse_variations(std::span<const std::string> words, Problems& problems,
                                        std::size_t most) {
  std::vector<Variation> variations;
  std::size_t combinations = 1;
  for (const std::string& word : words) {
    auto variation = parse_one(word, problems);
    if (!variation) continue;
    const bool again =
        std::any_of(variations.begin(), variations.end(),
                    [&](const Variation& other) { return other.key == variation->key; });
    if (again) {
      problems.push_back({kFile, word, "'" + variation->key + "' again", "every key once", ""});
      continue;
    }
    combinations *= variation->words.size();
    variations.push_back(*std::move(variation));
    if (combinations > most) {
      problems.push_back({kFile, word, std::to_string(combinations) + " combinations",
                          "at most " + std::to_string(most), ""});
      break;
    }
  }
  return variations;
}

std::optional<std::vector<VariedPlan>> plan_variations(const PlanRequest& request,
                                                       const std::vector<Variation>& variations,
                                                       Problems& problems) {
  const std::size_t before = problems.size();
  Planner planner(request);
  std::vector<VariedPlan> plans;
  std::vector<std::size_t> digits(variations.size(), 0);
  for (bool more = true; more;) {
    VariedPlan varied;
    std::vector<std::string> words = words_of(request.fixed);
    for (std::size_t i = 0; i < variations.size(); ++i) {
      varied.words.push_back(variations[i].words[digits[i]]);
      words.push_back(varied.words.back());
    }
    const FixedSettings fixed = parse_settings(words, problems);
    if (problems.size() != before) return std::nullopt;
    auto outcome = planner.plan(fixed, request.objective, problems);
    if (!outcome) return std::nullopt;
    varied.outcome = *std::move(outcome);
    plans.push_back(std::move(varied));
    more = false;
    for (std::size_t i = variations.size(); i-- > 0 && !more;) {
      more = ++digits[i] < variations[i].words.size();
      if (!more) digits[i] = 0;
    }
  }
  return plans;
}

const Plan* best_of(const std::vector<VariedPlan>& plans) {
  const Plan* best = nullptr;
  for (const VariedPlan& varied : plans) {
    const Plan* found = std::get_if<Plan>(&varied.outcome);
    if (found == nullptr) continue;
    if (best == nullptr || worse_by(*best, priced(*found)) < 0) best = found;
  }
  return best;
}

std::string describe(const std::vector<VariedPlan>& plans) {
  std::size_t width = 8;
  for (const VariedPlan& varied : plans) width = std::max(width, joined(varied.words).size());
  std::string head = "  settings";
  head.resize(width + 2, ' ');
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "  %10s %9s  %10s %10s %10s  %11s  ", "step", "to best",
                "gen", "reshard", "update", "peak");
  std::string out = head + text.data() + "layouts\n";
  const Plan* const best = best_of(plans);
  for (const VariedPlan& varied : plans) out += row_text(varied, width, best);
  return out;
}

std::string to_json(const std::vector<VariedPlan>& plans) {
  Node list = list_node();
  for (const VariedPlan& varied : plans) {
    Node row = map_node();
    Node words = list_node();
    for (const std::string& word : varied.words) words.items.push_back(node_of(word));
    add(row, "settings", std::move(words));
    const Plan* plan = std::get_if<Plan>(&varied.outcome);
    if (plan != nullptr) {
      add(row, "feasible", node_of(true));
      add(row, "step_s", node_of(plan->prediction.step_s));
      Node phases = map_node();
      for (const auto& [phase, seconds] : plan->prediction.phases_s) {
        add(phases, name_of(phase), node_of(seconds));
      }
      add(row, "phases_s", std::move(phases));
      add(row, "peak_bytes", node_of(plan->prediction.peak_bytes));
      add(row, "layouts", node_of(describe_layouts(*plan)));
    } else {
      add_to(row, std::get<Infeasible>(varied.outcome));
    }
    list.items.push_back(std::move(row));
  }
  return json_text(list);
}

}  // namespace tessera
