#include "planner/explain/memory_account.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/documents/strict_json.h"
#include "planner/plan/plan.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/peak_memory.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

// A rank by its block and its place among the block's ranks.
struct RankPlace {
  std::size_t block = 0;
  int index = 0;
};

// The ranks of a block, ascending.
std::vector<int> ranks_of(const Plan& plan, const std::vector<Role>& block) {
  std::vector<int> ranks = plan.find(block.front())->ranks;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::optional<RankPlace> place_of(const Plan& plan, const Placement& placement, int rank) {
  for (std::size_t block = 0; block < placement.size(); ++block) {
    const std::vector<int> ranks = ranks_of(plan, placement[block]);
    const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
    if (found != ranks.end() && *found == rank) {
      return RankPlace{block, static_cast<int>(found - ranks.begin())};
    }
  }
  return std::nullopt;
}

// What every block holds in every phase of the schedule.
using AllMemory = std::vector<std::vector<BlockMemory>>;

AllMemory all_memory(const Plan& plan, const Solution& solution, CostEvaluator& costs,
                     const std::stop_token& stop = {}) {
  AllMemory all(solution.placement.size());
  for (std::size_t block = 0; block < all.size(); ++block) {
    for (const ScheduledCall& call : plan.schedule) {
      end_if_stopped(stop);
      all[block].push_back(block_memory(solution, block, call.phase, costs, costs));
    }
  }
  return all;
}

struct Fullest {
  RankPlace place;
  std::size_t phase = 0;
  Bytes sum;
};

// Of equally full ones the first stays.
void take_fuller(Fullest& fullest, const AllMemory& all, RankPlace place, std::size_t phase) {
  const Bytes sum = bytes_of_rank(all[place.block][phase], place.index);
  if (sum > fullest.sum) fullest = {place, phase, sum};
}

Fullest fullest_in(const AllMemory& all, const Solution& solution, std::size_t phase) {
  Fullest fullest;
  for (std::size_t block = 0; block < all.size(); ++block) {
    for (int index = 0; index < solution.sizes[block]; ++index) {
      take_fuller(fullest, all, {block, index}, phase);
    }
  }
  return fullest;
}

void refuse_unknown(const Plan& plan, const MemoryQuestion& question, Problems& problems) {
  if (question.rank && !place_of(plan, placement_of(plan), *question.rank)) {
    problems.push_back({"--rank", "", std::to_string(*question.rank),
                        "a rank that has a role: 0 to " + std::to_string(plan.world_size() - 1),
                        ""});
  }
  const auto asked = [&](const ScheduledCall& call) { return call.phase == question.phase; };
  if (question.phase && std::none_of(plan.schedule.begin(), plan.schedule.end(), asked)) {
    std::string names;
    for (const ScheduledCall& call : plan.schedule) {
      names += (names.empty() ? "" : ", ") + std::string(name_of(call.phase));
    }
    problems.push_back({"--phase", "", "'" + std::string(name_of(*question.phase)) + "'",
                        "a phase of the plan: " + names, ""});
  }
}

PhaseAccount account_of(const BlockMemory& block, Phase phase, int index, CostEvaluator& costs) {
  PhaseAccount account{.phase = phase, .reserve = block.reserve};
  account.sum = bytes_of_rank(block, index);
  for (const RoleMemory& role : block.roles) {
    const Candidate& candidate = role.candidate;
    const int stage = stage_of_rank(role, index);
    account.roles.push_back(
        {.role = candidate.role,
         .stage = stage,
         .stages = candidate.pp,
         .use = role.by_stage[static_cast<std::size_t>(stage)],
         .asleep = costs.pricer(candidate.role, candidate.view).asleep(candidate, phase, stage)});
  }
  return account;
}

void refuse_impossible(const Solution& solution, CostEvaluator& costs, Problems& problems) {
  for (const auto& [role, candidate] : solution.choice) {
    const std::string why = impossible(costs.request(), candidate);
    if (!why.empty()) problems.push_back({"plan", "", why, "a layout that has an account", ""});
  }
}

// What the plan may use of the ranks of a block, which are of one GPU type.
PlanRequest seen_by(const Solution& solution, std::size_t block, CostEvaluator& costs) {
  return costs.request(solution.choice.at(solution.placement[block].front()).view);
}

}  // namespace

std::vector<RankPeak> rank_peaks(const Plan& plan, const Calibration& calibration,
                                 Problems& problems, const std::stop_token& stop) {
  const std::size_t before = problems.size();
  CostEvaluator costs = evaluator_of(plan, calibration);
  const Solution solution = solution_of(plan);
  refuse_impossible(solution, costs, problems);
  if (problems.size() != before) return {};
  const AllMemory all = all_memory(plan, solution, costs, stop);
  std::vector<RankPeak> peaks(static_cast<std::size_t>(plan.world_size()));
  for (std::size_t block = 0; block < all.size(); ++block) {
    const Bytes limit = usable_memory(seen_by(solution, block, costs));
    const std::vector<int> ranks = ranks_of(plan, solution.placement[block]);
    end_if_stopped(stop);
    for (std::size_t index = 0; index < ranks.size(); ++index) {
      RankPeak& rank = peaks[static_cast<std::size_t>(ranks[index])];
      rank.limit = limit;
      for (const BlockMemory& memory : all[block]) {
        rank.peak = std::max(rank.peak, bytes_of_rank(memory, static_cast<int>(index)));
      }
    }
  }
  return peaks;
}

std::optional<MemoryAccount> memory_account(const Plan& plan, const Calibration& calibration,
                                            const MemoryQuestion& question, Problems& problems) {
  const std::size_t before = problems.size();
  refuse_unknown(plan, question, problems);
  CostEvaluator costs = evaluator_of(plan, calibration);
  const Solution solution = solution_of(plan);
  refuse_impossible(solution, costs, problems);
  if (problems.size() != before) return std::nullopt;

  const AllMemory all = all_memory(plan, solution, costs);
  std::vector<Fullest> fullest;  // by phase
  for (std::size_t phase = 0; phase < plan.schedule.size(); ++phase) {
    fullest.push_back(fullest_in(all, solution, phase));
  }
  const auto less = [](const Fullest& a, const Fullest& b) { return a.sum < b.sum; };
  const Fullest most = *std::max_element(fullest.begin(), fullest.end(), less);
  Fullest chosen;
  for (std::size_t phase = 0; phase < plan.schedule.size(); ++phase) {
    if (question.phase && plan.schedule[phase].phase != *question.phase) continue;
    const RankPlace place =
        question.rank ? *place_of(plan, solution.placement, *question.rank) : fullest[phase].place;
    take_fuller(chosen, all, place, phase);
  }

  const auto global = [&](RankPlace place) {
    return ranks_of(plan, solution.placement[place.block])[static_cast<std::size_t>(place.index)];
  };
  MemoryAccount account{.rank = global(chosen.place), .at = chosen.phase, .peak = most.sum};
  account.planned_peak = plan.prediction.peak_bytes;
  for (std::size_t phase = 0; phase < plan.schedule.size(); ++phase) {
    PhaseAccount& each = account.phases.emplace_back(account_of(
        all[chosen.place.block][phase], plan.schedule[phase].phase, chosen.place.index, costs));
    each.fullest_rank = global(fullest[phase].place);
    each.fullest_sum = fullest[phase].sum;
  }
  PlanRequest seen = seen_by(solution, chosen.place.block, costs);
  seen.risk = question.risk.value_or(seen.risk);
  account.device = seen.cluster.device.memory;
  account.limit = usable_memory(seen);
  account.margin = margin_of(seen);
  return account;
}

namespace {

// Amounts of one table in one unit, without it.
struct Unit {
  const char* name;
  double bytes;
  std::string text(Bytes amount) const {
    std::array<char, 32> out{};
    std::snprintf(out.data(), out.size(), "%.2f", static_cast<double>(amount.value) / bytes);
    return out.data();
  }
};

Unit unit_for(Bytes amount) {
  if (amount >= 1LL << 30) return {"GiB", 1LL << 30};
  if (amount >= 1LL << 20) return {"MiB", 1LL << 20};
  return {"KiB", 1LL << 10};
}

constexpr int kNameWidth = 15, kColumnWidth = 11;

std::string padded(const std::string& text, int width) {
  const int missing = width - static_cast<int>(text.size());
  return missing > 0 ? std::string(static_cast<std::size_t>(missing), ' ') + text : text;
}

std::string line(const std::string& name, const std::vector<std::string>& columns,
                 const std::string& note = "") {
  std::string out = "  " + name;
  out.resize(std::max<std::size_t>(out.size(), kNameWidth), ' ');
  for (const std::string& column : columns) out += padded(column, kColumnWidth);
  return out + (note.empty() ? "" : "  " + note) + "\n";
}

// A number for every role and, last, for all of them.
using OfRoles = std::vector<Bytes>;

OfRoles of_roles(const PhaseAccount& account, bool asleep, std::size_t cls) {
  OfRoles numbers;
  Bytes all;
  for (const RoleAccount& role : account.roles) {
    numbers.emplace_back(memory_classes(asleep ? role.asleep : role.use)[cls].second);
    all += numbers.back();
  }
  numbers.push_back(all);
  return numbers;
}

OfRoles totals(const PhaseAccount& account, bool asleep) {
  OfRoles numbers(account.roles.size() + 1);
  for (std::size_t cls = 0; cls < kMemoryClasses; ++cls) {
    const OfRoles each = of_roles(account, asleep, cls);
    for (std::size_t i = 0; i < each.size(); ++i) numbers[i] += each[i];
  }
  return numbers;
}

std::vector<std::string> texts(const OfRoles& numbers, const Unit& unit) {
  std::vector<std::string> columns;
  for (const Bytes number : numbers) columns.push_back(unit.text(number));
  return columns;
}

std::vector<std::string> role_names(const PhaseAccount& account) {
  std::vector<std::string> names;
  for (const RoleAccount& role : account.roles) names.emplace_back(name_of(role.role));
  return names;
}

// "actor stage 1 of 4, critic stage 0 of 2"; empty where nothing is cut into stages.
std::string stages_text(const PhaseAccount& account) {
  std::string out;
  for (const RoleAccount& role : account.roles) {
    if (role.stages == 1) continue;
    out += (out.empty() ? "" : ", ") + std::string(name_of(role.role)) + " stage " +
           std::to_string(role.stage) + " of " + std::to_string(role.stages);
  }
  return out;
}

std::string classes_part(const MemoryAccount& account, const Unit& unit) {
  const PhaseAccount& here = account.looked_at();
  std::vector<std::string> heads = role_names(here);
  heads.emplace_back("all");
  std::string out = line(unit.name, heads);
  for (std::size_t cls = 0; cls < kMemoryClasses; ++cls) {
    const OfRoles numbers = of_roles(here, false, cls);
    if (std::all_of(numbers.begin(), numbers.end(), [](Bytes b) { return b == 0; })) continue;
    out += line(std::string(memory_classes({})[cls].first), texts(numbers, unit));
  }
  const std::vector<std::string> blank(here.roles.size());
  const auto last = [&](const char* name, Bytes amount, const std::string& note = "") {
    std::vector<std::string> columns = blank;
    columns.push_back(unit.text(amount));
    return line(name, columns, note);
  };
  out += line("roles", texts(totals(here, false), unit));
  out += last("reserve", here.reserve, "outside the allocator: context, libraries, NCCL");
  out += last("sum", here.sum);
  out += last("limit", account.limit,
              unit.text(account.device) + " of the device less " +
                  unit.text(account.margin.fragments) + " in fragments, " +
                  unit.text(account.margin.outside + account.margin.account) + " not counted, " +
                  unit.text(account.margin.safety) + " of error bar");
  out += last("left", account.limit - here.sum);
  const OfRoles away = totals(here, true);
  if (away.back() > 0) {
    out += line("asleep", texts(away, unit), "off the device, in no sum");
  }
  return out;
}

std::string phases_part(const MemoryAccount& account, const Unit& unit) {
  std::vector<std::string> heads = role_names(account.looked_at());
  for (const char* head : {"reserve", "sum", "left", "fullest"}) heads.emplace_back(head);
  std::string out = line(unit.name, heads);
  for (const PhaseAccount& each : account.phases) {
    OfRoles numbers = totals(each, false);
    numbers.back() = each.reserve;
    numbers.insert(numbers.end(), {each.sum, account.limit - each.sum, each.fullest_sum});
    out += line(std::string(name_of(each.phase)), texts(numbers, unit),
                each.fullest_sum == each.sum ? "" : "rank " + std::to_string(each.fullest_rank));
  }
  return out;
}

}  // namespace

std::string describe(const MemoryAccount& account) {
  const PhaseAccount& here = account.looked_at();
  const Unit unit = unit_for(account.peak);
  const std::string rank = "rank " + std::to_string(account.rank);
  std::string out = "memory of " + rank + " in " + std::string(name_of(here.phase));
  if (here.sum == account.peak) out += ", the fullest rank in its fullest phase";
  const std::string stages = stages_text(here);
  out += (stages.empty() ? "" : " (" + stages + ")") + ":\n" + classes_part(account, unit);
  out += "phases of " + rank + ", and the fullest rank in each:\n" + phases_part(account, unit);
  if (account.planned_peak != account.peak) {
    out += "the plan states a peak of " + unit.text(account.planned_peak) + " " + unit.name +
           ": it was made with other constants or another version\n";
  }
  return out;
}

namespace {

Node classes_node(const MemoryUse& use) {
  Node classes = map_node();
  for (const auto& [name, bytes] : memory_classes(use)) {
    if (bytes != 0) add(classes, name, node_of(bytes));
  }
  return classes;
}

Node phase_node(const MemoryAccount& account, const PhaseAccount& phase) {
  Node root = map_node(), roles = map_node();
  add(root, "phase", node_of(name_of(phase.phase)));
  for (const RoleAccount& role : phase.roles) {
    Node each = map_node();
    add(each, "stage", node_of(role.stage));
    add(each, "bytes", node_of(role.use.total()));
    add(each, "classes", classes_node(role.use));
    add(each, "asleep", classes_node(role.asleep));
    add(roles, name_of(role.role), std::move(each));
  }
  add(root, "roles", std::move(roles));
  add(root, "reserve_bytes", node_of(phase.reserve));
  add(root, "sum_bytes", node_of(phase.sum));
  add(root, "left_bytes", node_of(account.limit - phase.sum));
  add(root, "fullest_rank", node_of(phase.fullest_rank));
  add(root, "fullest_bytes", node_of(phase.fullest_sum));
  return root;
}

}  // namespace

std::string to_json(const MemoryAccount& account) {
  Node root = map_node(), phases = list_node();
  add(root, "rank", node_of(account.rank));
  add(root, "phase", node_of(name_of(account.looked_at().phase)));
  add(root, "device_bytes", node_of(account.device));
  add(root, "fragmentation_bytes", node_of(account.margin.fragments));
  add(root, "outside_bytes", node_of(account.margin.outside));
  add(root, "account_bytes", node_of(account.margin.account));
  add(root, "safety_bytes", node_of(account.margin.safety));
  add(root, "limit_bytes", node_of(account.limit));
  add(root, "peak_bytes", node_of(account.peak));
  add(root, "planned_peak_bytes", node_of(account.planned_peak));
  for (const PhaseAccount& phase : account.phases) {
    phases.items.push_back(phase_node(account, phase));
  }
  add(root, "phases", std::move(phases));
  return json_text(root);
}

}  // namespace tessera
