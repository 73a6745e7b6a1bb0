#include "executor/commands/memory_report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "planner/explain/memory_account.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"

namespace tessera {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::optional<PlannedMemory> planned_for(const Plan& plan, int rank, Phase phase,
                                         double& fragmentation) {
  Problems ignored;
  const auto constants = constants_of(plan, ignored);
  if (!constants) return std::nullopt;
  const Calibration& calibration = constants->calibration;
  fragmentation = calibration.fragmentation.value;
  auto account = memory_account(plan, calibration, {.rank = rank, .phase = phase}, ignored);
  if (!account) account = memory_account(plan, calibration, {.rank = rank}, ignored);
  if (!account) return std::nullopt;
  const PhaseAccount& here = account->looked_at();
  PlannedMemory planned{
      .phase = here.phase, .reserve = here.reserve, .sum = here.sum, .limit = account->limit};
  for (const RoleAccount& role : here.roles) planned.use = planned.use + role.use;
  return planned;
}

/// Where tensors are counted one by one on a CPU, libraries are not: neither are they planned.
bool without_libraries(const MemoryRefusal& refusal) {
  return refusal.in_use.context == 0 && refusal.in_use.libraries == 0;
}

std::string amount(std::int64_t bytes) {
  if (bytes >= std::int64_t{1} << 30 || bytes == 0) return in_gib(Bytes{bytes});
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f MiB",
                static_cast<double>(bytes) / (std::int64_t{1} << 20));
  return text.data();
}

/// The limit as the command line takes it, rounded down: GiB with four decimals.
double limit_gib(const MemoryReport& report) {
  return std::floor(gib(report.would_fit) * 1e4) / 1e4;
}

std::array<std::pair<const char*, std::int64_t>, 5> measured_classes(const MemoryInUse& use) {
  return {{{"tensors", use.tensors},
           {"reserved by torch and idle", use.idle},
           {"arenas", use.arenas},
           {"device context", use.context},
           {"NCCL and libraries", use.libraries}}};
}

std::string planned_lines(const PlannedMemory& planned) {
  std::string out = "the plan for " + std::string(name_of(planned.phase)) + ": " +
                    amount(planned.sum) + " of " + amount(planned.limit) + "\n";
  for (const auto& [name, bytes] : memory_classes(planned.use)) {
    if (bytes != 0) out += "  " + std::string(name) + " " + amount(bytes.value) + "\n";
  }
  return out + "  outside the allocator " + amount(planned.reserve) + "\n";
}

std::string largest_line(const std::vector<LiveTensors>& largest) {
  if (largest.empty()) return {};
  std::string out = "largest tensors:";
  for (const LiveTensors& each : largest) {
    out += (&each == largest.data() ? " " : ", ") + std::to_string(each.count) + " x " +
           amount(each.bytes);
  }
  return out + "\n";
}

/// Whether this rank was the first to write the folder's oom.json.
bool write_first(const MemoryReport& report, const fs::path& folder) {
  const fs::path mine = folder / (".oom-" + std::to_string(report.rank) + ".json");
  try {
    write_text_file(mine, to_json(report));
  } catch (const Error&) {
    return false;  // no folder, or no room in it: another rank, or the messages, must do
  }
  // link() fails where the name is taken: exactly one rank is first.
  const bool first = ::link(mine.c_str(), (folder / "oom.json").c_str()) == 0;
  std::error_code ignored;
  fs::remove(mine, ignored);
  return first;
}

}  // namespace

MemoryReport memory_report(const Plan& plan, const MemoryRefusal& refusal, int rank,
                           const std::string& device, Phase phase, std::int64_t step) {
  MemoryReport report{
      .rank = rank, .device = device, .phase = phase, .step = step, .refusal = refusal};
  double fragmentation = 0;
  report.planned = planned_for(plan, rank, phase, fragmentation);
  if (!report.planned) return report;
  const PlannedMemory& planned = *report.planned;
  const Bytes uncounted = without_libraries(refusal) ? planned.reserve : Bytes{};
  const auto needed = static_cast<double>(refusal.in_use.total() + refusal.requested);
  const auto expected = static_cast<double>((planned.sum - uncounted).value);
  report.measured_share = needed / expected;
  Bytes limit = planned.limit - uncounted;
  if (refusal.limit > 0) {
    limit = std::min(limit, Bytes{static_cast<std::int64_t>(static_cast<double>(refusal.limit) *
                                                            (1 - fragmentation))});
  }
  const double short_of = std::max(1.0, report.measured_share);
  report.would_fit =
      Bytes{static_cast<std::int64_t>(static_cast<double>(limit.value) / short_of)} + uncounted;
  return report;
}

std::string describe(const MemoryReport& report, const std::string& plan_again) {
  const MemoryRefusal& refusal = report.refusal;
  std::string out = "out of memory on rank " + std::to_string(report.rank) + " (" + report.device +
                    ") in phase " + std::string(name_of(report.phase)) + " of step " +
                    std::to_string(report.step) + "\n" + refusal.asked_by + " asked for " +
                    (refusal.requested > 0 ? amount(refusal.requested) : "more") + " with " +
                    amount(refusal.in_use.total()) + " in use" +
                    (refusal.limit > 0 ? " of " + amount(refusal.limit) : "") + "\n";
  for (const auto& [name, bytes] : measured_classes(refusal.in_use)) {
    if (bytes != 0) out += "  " + std::string(name) + " " + amount(bytes) + "\n";
  }
  out += largest_line(refusal.largest);
  if (!refusal.allocator.empty()) out += "torch's allocator: " + refusal.allocator + "\n";
  if (!report.planned) return out + "the plan's account is not known: its calibration is missing\n";
  out += planned_lines(*report.planned);
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "needed: %.3f of what was planned; settings that fit:\n",
                report.measured_share);
  out += text.data();
  std::snprintf(text.data(), text.size(), " --memory-limit-gib %.4f\n", limit_gib(report));
  return out + "  " + plan_again + text.data();
}

std::string to_json(const MemoryReport& report) {
  const MemoryRefusal& refusal = report.refusal;
  const MemoryInUse& use = refusal.in_use;
  ordered_json made{{"version", 1},
                    {"rank", report.rank},
                    {"device", report.device},
                    {"phase", name_of(report.phase)},
                    {"step", report.step},
                    {"asked_by", refusal.asked_by},
                    {"requested_bytes", refusal.requested},
                    {"limit_bytes", refusal.limit},
                    {"in_use_bytes",
                     {{"tensors", use.tensors},
                      {"idle", use.idle},
                      {"arenas", use.arenas},
                      {"context", use.context},
                      {"libraries", use.libraries},
                      {"total", use.total()}}},
                    {"allocator", refusal.allocator}};
  made["largest_tensors"] = ordered_json::array();
  for (const LiveTensors& each : refusal.largest) {
    made["largest_tensors"].push_back({{"bytes", each.bytes}, {"count", each.count}});
  }
  if (report.planned) {
    const PlannedMemory& planned = *report.planned;
    ordered_json classes;
    for (const auto& [name, bytes] : memory_classes(planned.use)) {
      if (bytes != 0) classes[std::string(name)] = bytes.value;
    }
    made["planned"] = {{"phase", name_of(planned.phase)},
                       {"bytes", classes},
                       {"reserve_bytes", planned.reserve.value},
                       {"sum_bytes", planned.sum.value},
                       {"limit_bytes", planned.limit.value}};
    made["needed_over_planned"] = report.measured_share;
    made["memory_limit_gib"] = limit_gib(report);
  }
  return made.dump(1) + "\n";
}

std::string tell(const MemoryReport& report, const fs::path& folder,
                 const std::string& plan_again) {
  if (write_first(report, folder)) {
    std::fprintf(stderr, "%s", describe(report, plan_again).c_str());
  }
  return "rank " + std::to_string(report.rank) + " ran out of memory in phase " +
         std::string(name_of(report.phase)) + " of step " + std::to_string(report.step);
}

}  // namespace tessera
