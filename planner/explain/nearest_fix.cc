#include "planner/explain/nearest_fix.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/plan/amounts.h"
#include "planner/pricing/evaluate.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

constexpr const char* kInstead = " instead of ";

bool feasible(const PlanRequest& request, const Capabilities& capabilities) {
  CostEvaluator costs(request);
  FrontStore store;
  return any_plan(search_problem(request, capabilities, costs), store).has_value();
}

// The request under other settings; what they leave as it is keeps its prices.
class OtherSettings {
 public:
  OtherSettings(const PlanRequest& request, const Capabilities& capabilities)
      : request_(request), capabilities_(capabilities), costs_(request) {}

  bool fit(const FixedSettings& settings) {
    request_.fixed = settings;
    return any_plan(search_problem(request_, capabilities_, costs_, std::nullopt, true), store_)
        .has_value();
  }

 private:
  PlanRequest request_;
  const Capabilities& capabilities_;
  CostEvaluator costs_;
  FrontStore store_;
};

using Setting = std::pair<std::pair<Role, Field>, std::int64_t>;

std::string word_of(const Setting& setting) {
  FixedSettings one;
  one.values.insert(setting);
  return words_of(one).front();
}

// What practice tries, in this order, instead of a fixed value that leaves too little memory
// (advice.h): a lower rollout TP with more micro-DP, fewer sequences at once, offload,
// recomputation, ZeRO, smaller micro-batches, more TP.
std::vector<std::int64_t> rungs_of(const Setting& setting) {
  const auto& [key, value] = setting;
  const auto& [role, field] = key;
  std::vector<std::int64_t> values;
  const auto halves = [&](std::int64_t least) {
    for (std::int64_t v = value / 2; v >= least; v /= 2) values.push_back(v);
  };
  switch (field) {
    case Field::tp:
      if (role == Role::rollout) {
        halves(1);
      }
      values.insert(values.end(), {2 * value, 4 * value, 8 * value});
      break;
    case Field::max_sequences:
    case Field::tokens:
    case Field::update_tokens:
      halves(1);
      break;
    case Field::offload:
    case Field::recompute:
      for (std::int64_t v = value + 1; v <= 2; ++v) values.push_back(v);
      break;
    case Field::zero:
      for (std::int64_t v = value + 1; v <= 3; ++v) values.push_back(v);
      break;
    default:
      break;
  }
  return values;
}

int rank_of(const Setting& setting) {
  const auto& [role, field] = setting.first;
  constexpr std::array kOrder{Field::max_sequences, Field::offload,       Field::recompute,
                              Field::zero,          Field::update_tokens, Field::tokens};
  if (role == Role::rollout && field == Field::tp) return 0;
  const auto* found = std::find(kOrder.begin(), kOrder.end(), field);
  return static_cast<int>(found - kOrder.begin()) + 1;
}

// Takes changes up to a number.
class Found {
 public:
  explicit Found(std::size_t most) : most_(most) {}

  bool full() const { return fixes_.size() >= most_; }
  void add(NearestFix fix) {
    if (!full() && !fix.words.empty()) fixes_.push_back(std::move(fix));
  }
  std::vector<NearestFix> take() { return std::move(fixes_); }

 private:
  std::size_t most_;
  std::vector<NearestFix> fixes_;
};

// The first rung of practice's ladder below a fixed setting with which something fits.
NearestFix first_rung(const PlanRequest& request, const Setting& setting, OtherSettings& other) {
  for (const std::int64_t value : rungs_of(setting)) {
    FixedSettings changed = request.fixed;
    changed.values[setting.first] = value;
    std::string words = word_of({setting.first, value});
    // As many GPUs as before: what is not in a replica any more makes more of them.
    const std::pair replicas{setting.first.first, Field::dp};
    if (setting.first.second == Field::tp && changed.values.contains(replicas)) {
      std::int64_t& dp = changed.values.at(replicas);
      if (dp * setting.second % value != 0) continue;
      dp = dp * setting.second / value;
      words += " " + word_of({replicas, dp});
    }
    if (other.fit(changed)) return {words + kInstead + word_of(setting), {changed}};
  }
  return {};
}

void add_rungs(const PlanRequest& request, OtherSettings& other, Found& found) {
  std::vector<Setting> settings(request.fixed.values.begin(), request.fixed.values.end());
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& a, const Setting& b) { return rank_of(a) < rank_of(b); });
  for (const Setting& setting : settings) {
    if (found.full()) return;
    found.add(first_rung(request, setting, other));
  }
}

void add_without_one_setting(const PlanRequest& request, OtherSettings& other, Found& found) {
  const auto without = [&](const std::string& word, const FixedSettings& left) {
    if (!found.full() && other.fit(left)) found.add({"leave out " + word, {left}});
  };
  for (const auto& setting : request.fixed.values) {
    FixedSettings left = request.fixed;
    left.values.erase(setting.first);
    without(word_of(setting), left);
  }
  for (const auto& [role, type] : request.fixed.gpu_types) {
    FixedSettings left = request.fixed;
    left.gpu_types.erase(role);
    without(std::string(name_of(role)) + ".gpu=" + type, left);
  }
  if (!request.fixed.placement.empty()) {
    FixedSettings left = request.fixed;
    left.placement.clear();
    without("placement=" + request.fixed.placement, left);
  }
}

// With several GPU types, more of those with most memory.
void set_nodes(ClusterSpec& cluster, std::int64_t nodes) {
  if (!cluster.groups.empty()) {
    std::max_element(cluster.groups.begin(), cluster.groups.end(),
                     [](const NodeGroup& a, const NodeGroup& b) {
                       return a.device.memory.value < b.device.memory.value;
                     })
        ->nodes += nodes - cluster.nodes;
  }
  cluster.nodes = nodes;
}

NearestFix with_more_nodes(const PlanRequest& request, const Capabilities& capabilities) {
  const auto fits = [&](std::int64_t nodes) {
    PlanRequest changed = request;
    set_nodes(changed.cluster, nodes);
    return feasible(changed, capabilities);
  };
  std::int64_t low = request.cluster.nodes, high = 2 * low;
  while (high <= 64 * request.cluster.nodes && !fits(high)) {
    low = high;
    high *= 2;
  }
  if (high > 64 * request.cluster.nodes) return {};
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return {"use " + std::to_string(high) + " nodes (" +
              std::to_string(high * request.cluster.gpus_per_node) + " GPUs)",
          {std::nullopt, high}};
}

NearestFix with_more_memory(const PlanRequest& request, const Capabilities& capabilities) {
  const std::int64_t now = request.cluster.device.memory.value;
  for (const double factor : {1.25, 1.5, 2.0, 3.0, 4.0, 8.0}) {
    PlanRequest changed = request;
    changed.cluster.device.memory =
        Bytes{static_cast<std::int64_t>(factor * static_cast<double>(now))};
    for (NodeGroup& group : changed.cluster.groups) {
      group.device.memory.value =
          std::max(group.device.memory.value, changed.cluster.device.memory.value);
    }
    if (feasible(changed, capabilities)) {
      return {"use GPUs with " + in_gib(changed.cluster.device.memory) + " of memory", {}};
    }
  }
  return {};
}

}  // namespace

std::string brief(const std::string& words) { return words.substr(0, words.find(kInstead)); }

NearestFix fix_of_limits(const PlanRequest& request, const Capabilities& capabilities,
                         const std::vector<EngineLimit>& limits) {
  PlanRequest changed = request;
  std::string words;
  for (const EngineLimit& limit : limits) {
    changed.fixed.values.erase({limit.role, limit.field});
    words += (words.empty() ? "leave out " : " and ") + limit.setting;
  }
  if (feasible(changed, capabilities)) return {words, {changed.fixed}};
  return {words + ", but nothing fits then either", {}};
}

std::vector<NearestFix> fixes_of(const PlanRequest& request, const Capabilities& capabilities,
                                 std::size_t most) {
  Found found(most);
  OtherSettings other(request, capabilities);
  add_rungs(request, other, found);
  add_without_one_setting(request, other, found);
  if (!found.full()) found.add(with_more_nodes(request, capabilities));
  return found.take();
}

NearestFix nearest_fix(const PlanRequest& request, const Capabilities& capabilities) {
  std::vector<NearestFix> found = fixes_of(request, capabilities, 1);
  return found.empty() ? with_more_memory(request, capabilities) : std::move(found.front());
}

}  // namespace tessera
