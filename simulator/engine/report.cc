#include "simulator/engine/report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/spec/node_groups.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/memory_limit.h"
#include "simulator/engine/network_report.h"

namespace tessera {
namespace {

std::string seconds_text(double seconds) {
  return seconds < 1 ? printed("%.2f ms", seconds * 1e3) : printed("%.3f s", seconds);
}

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 1 << 30 ? printed("%.1f MiB", value / (1 << 20))
                         : printed("%.2f GiB", value / (1 << 30));
}

std::string without_numbers(const std::string& name) {
  std::string stem = name.substr(0, name.find_first_of("0123456789"));
  while (!stem.empty() && stem.back() == ' ') stem.pop_back();
  return stem;
}

std::string phases_text(const Simulation& simulation) {
  std::map<Phase, std::int64_t> slack;  // the least of its calls
  for (const CallSlack& call : simulation.calls) {
    const auto known = slack.try_emplace(call.phase, call.slack_ns).first;
    known->second = std::min(known->second, call.slack_ns);
  }
  std::string text =
      printed("%-16s %12s %8s %8s %12s\n", "phase", "time", "share", "idle", "slack");
  for (const auto& [phase, seconds] : simulation.phases_s) {
    text += printed("%-16s %12s %7.1f%% %7.1f%% %12s\n", std::string(name_of(phase)).c_str(),
                    seconds_text(seconds).c_str(), 100 * seconds / simulation.step_s,
                    100 * simulation.phases_idle.at(phase),
                    seconds_text(static_cast<double>(slack[phase]) * 1e-9).c_str());
  }
  return text + printed("%-16s %12s\n", "step", seconds_text(simulation.step_s).c_str());
}

std::string quantiles_text(const char* name, const Quantiles& of) {
  return printed("%-16s %12s %12s %12s\n", name, seconds_text(of.p10).c_str(),
                 seconds_text(of.p50).c_str(), seconds_text(of.p90).c_str());
}

// Phases that no draw changes are left out.
std::string spread_text(const StepSpread& spread) {
  std::string text = printed("%-16s %12s %12s %12s\n",
                             printed("over %d draws", spread.draws).c_str(), "p10", "p50", "p90");
  for (const auto& [phase, quantiles] : spread.phases_s) {
    if (quantiles.p10 == quantiles.p90) continue;
    text += quantiles_text(std::string(name_of(phase)).c_str(), quantiles);
  }
  text += quantiles_text("step", spread.step_s);
  text += "one standard deviation: " + seconds_text(spread.draws_deviation_s) + " of the draws";
  if (spread.constants_deviation_s > 0) {
    text += ", " + seconds_text(spread.constants_deviation_s) + " of the constants, " +
            seconds_text(spread.deviation_s) + " of both";
  }
  return text + "\n";
}

nlohmann::ordered_json quantiles_json(const Quantiles& of) {
  return {{"p10", of.p10}, {"p50", of.p50}, {"p90", of.p90}};
}

nlohmann::ordered_json spread_json(const StepSpread& spread) {
  nlohmann::ordered_json json = {{"draws", spread.draws},
                                 {"step_s", quantiles_json(spread.step_s)},
                                 {"draws_deviation_s", spread.draws_deviation_s},
                                 {"constants_deviation_s", spread.constants_deviation_s},
                                 {"deviation_s", spread.deviation_s}};
  for (const auto& [phase, quantiles] : spread.phases_s) {
    json["phases_s"][std::string(name_of(phase))] = quantiles_json(quantiles);
  }
  return json;
}

nlohmann::ordered_json rollout_json(const Simulation& simulation) {
  auto json = nlohmann::ordered_json::array();
  for (const RolloutTail& tail : rollout_tails(simulation.rollout)) {
    json.push_back({{"step", tail.step},
                    {"sequences", tail.sequences},
                    {"start_ns", tail.start_ns},
                    {"half_ended_ns", tail.half_ns},
                    {"nine_tenths_ended_ns", tail.most_ns},
                    {"end_ns", tail.end_ns},
                    {"tail_share", tail.share()}});
    auto& replicas = json.back()["replicas"] = nlohmann::ordered_json::array();
    for (const ReplicaRollout& replica : simulation.rollout) {
      if (replica.step != tail.step) continue;
      const ActiveSample& last = replica.samples.back();
      replicas.push_back({{"replica", replica.replica},
                          {"ranks", replica.ranks},
                          {"sequences", last.ended},
                          {"end_ns", last.time_ns}});
    }
  }
  return json;
}

std::string path_text(const Simulation& simulation) {
  constexpr std::size_t kMost = 10;
  const std::vector<PathShare> shares = path_shares(simulation);
  double whole = 0;
  for (const PathShare& share : shares) whole += share.seconds;
  std::string text = printed("critical path, %zu tasks\n", simulation.critical_path.size());
  for (std::size_t i = 0; i < std::min(kMost, shares.size()); ++i) {
    const PathShare& share = shares[i];
    text +=
        printed("  %-16s %-18s %6lld x %12s %7.1f%%\n", std::string(name_of(share.phase)).c_str(),
                share.name.c_str(), static_cast<long long>(share.tasks),
                seconds_text(share.seconds).c_str(), 100 * share.seconds / whole);
  }
  return text;
}

// A rank's line without its number.
std::string rank_text(const RankSummary& rank, std::int64_t limit) {
  const std::string phase =
      rank.peak_phase == Phase::load ? "between phases" : std::string(name_of(rank.peak_phase));
  return printed("%12s %7.1f%%  %-16s %7.1f%% %14s%s\n", bytes_text(rank.peak_bytes).c_str(),
                 100 * static_cast<double>(rank.peak_bytes) / static_cast<double>(limit),
                 phase.c_str(), 100 * rank.idle_share, seconds_text(rank.exposed_comm_s).c_str(),
                 rank.peak_bytes > limit ? "  DOES NOT FIT" : "");
}

/// The first moment in which a rank holds more than its device gives, and what lives then.
std::string over_text(const Simulation& simulation,
                      const std::function<std::int64_t(std::size_t)>& limit) {
  const MemorySample* first = nullptr;
  for (const MemorySample& sample : simulation.timeline.memory) {
    const bool over = sample.use.total() > limit(static_cast<std::size_t>(sample.rank));
    if (over && (first == nullptr || sample.time_ns < first->time_ns)) first = &sample;
  }
  if (first == nullptr) return {};
  std::string text = printed("over the limit first on rank %d at %s: ", first->rank,
                             seconds_text(static_cast<double>(first->time_ns) * 1e-9).c_str());
  std::string classes;
  for (const auto& [name, bytes] : memory_classes(first->use)) {
    if (bytes <= 0) continue;
    classes += (classes.empty() ? "" : ", ") + std::string(name) + " " + bytes_text(bytes);
  }
  return text + classes + "\n";
}

// Ranks that read alike share a line.
std::string ranks_text(const Simulation& simulation, const Plan& plan,
                       const Calibration& calibration) {
  const auto limit = [&](std::size_t rank) {
    return usable_memory_of_rank(plan, calibration, static_cast<int>(rank));
  };
  std::string text = printed("%-12s %12s %8s  %-16s %8s %14s\n", "ranks", "peak", "of limit", "in",
                             "idle", "exposed comm");
  std::vector<std::pair<std::string, std::vector<int>>> alike;
  std::map<std::string, std::size_t> place;
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    const std::string what = rank_text(simulation.ranks[rank], limit(rank));
    const auto [known, fresh] = place.try_emplace(what, alike.size());
    if (fresh) alike.push_back({what, {}});
    alike[known->second].second.push_back(static_cast<int>(rank));
  }
  for (const auto& [what, ranks] : alike)
    text += printed("%-12s ", ranges_text(ranks).c_str()) + what;
  text += over_text(simulation, limit);
  if (plan.cluster.groups.empty()) {
    return text + printed("limit %s of each device\n", bytes_text(limit(0)).c_str());
  }
  for (std::size_t group = 0; group < plan.cluster.groups.size(); ++group) {
    const auto rank =
        static_cast<std::size_t>(first_rank_of(plan.cluster, static_cast<int>(group)));
    text += printed("limit %s of each %s\n", bytes_text(limit(rank)).c_str(),
                    plan.cluster.groups[group].device.name.c_str());
  }
  return text;
}

}  // namespace

std::vector<PathShare> path_shares(const Simulation& simulation) {
  std::map<std::pair<Phase, std::string>, PathShare> by_kind;
  for (const PathTask& task : simulation.critical_path) {
    const std::string name = without_numbers(task.name);
    PathShare& share = by_kind[{task.phase, name}];
    share.phase = task.phase;
    share.name = name;
    ++share.tasks;
    share.seconds += static_cast<double>(task.end_ns - task.start_ns) * 1e-9;
  }
  std::vector<PathShare> shares;
  for (auto& [kind, share] : by_kind) shares.push_back(std::move(share));
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PathShare& a, const PathShare& b) { return a.seconds > b.seconds; });
  return shares;
}

std::string to_chrome_trace(const Simulation& simulation, std::size_t most_events) {
  const std::vector<Counter> counters =
      load_counters(simulation, most_events > 0 ? std::max<std::size_t>(1, most_events / 4) : 0);
  std::size_t left = most_events;
  for (const Counter& counter : counters) left -= std::min(left, counter.changes().size());
  return to_chrome_trace({&simulation.timeline}, left, counters);
}

std::string to_text(const Simulation& simulation, const Plan& plan, const Calibration& calibration,
                    const std::optional<StepSpread>& spread) {
  const double exposed = simulation.exposed_comm_s();
  return phases_text(simulation) +
         printed("exposed communication %s (%.1f%% of the step) on the rank with most\n\n",
                 seconds_text(exposed).c_str(), 100 * exposed / simulation.step_s) +
         network_text(simulation) + (spread ? spread_text(*spread) + "\n" : "") +
         path_text(simulation) + "\n" + ranks_text(simulation, plan, calibration);
}

std::string to_json(const Simulation& simulation, const Plan& plan, const Calibration& calibration,
                    const std::optional<StepSpread>& spread) {
  nlohmann::ordered_json json = {{"step_s", simulation.step_s},
                                 {"exposed_comm_s", simulation.exposed_comm_s()},
                                 {"peak_bytes", simulation.peak_bytes()},
                                 {"limit_bytes", usable_memory(plan, calibration).value}};
  if (spread) json["spread"] = spread_json(*spread);
  auto& phases = json["phases"] = nlohmann::ordered_json::array();
  for (const auto& [phase, seconds] : simulation.phases_s) {
    phases.push_back({{"phase", name_of(phase)},
                      {"seconds", seconds},
                      {"share", seconds / simulation.step_s},
                      {"idle", simulation.phases_idle.at(phase)}});
  }
  auto& calls = json["calls"] = nlohmann::ordered_json::array();
  for (const CallSlack& call : simulation.calls) {
    calls.push_back({{"phase", name_of(call.phase)},
                     {"step", call.step},
                     {"start_ns", call.start_ns},
                     {"end_ns", call.end_ns},
                     {"slack_ns", call.slack_ns}});
  }
  add_network(simulation, json);
  auto& path = json["critical_path"] = nlohmann::ordered_json::array();
  for (const PathTask& task : simulation.critical_path) {
    path.push_back({{"name", task.name},
                    {"phase", name_of(task.phase)},
                    {"step", task.step},
                    {"ranks", task.ranks},
                    {"start_ns", task.start_ns},
                    {"end_ns", task.end_ns},
                    {"slack_ns", task.slack_ns}});
  }
  if (!simulation.rollout.empty()) json["rollout"] = rollout_json(simulation);
  auto& ranks = json["ranks"] = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    const RankSummary& summary = simulation.ranks[rank];
    ranks.push_back(
        {{"rank", rank},
         {"idle_share", summary.idle_share},
         {"exposed_comm_s", summary.exposed_comm_s},
         {"peak_bytes", summary.peak_bytes},
         {"limit_bytes", usable_memory_of_rank(plan, calibration, static_cast<int>(rank)).value},
         {"peak_phase", summary.peak_phase == Phase::load ? "none" : name_of(summary.peak_phase)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace tessera
