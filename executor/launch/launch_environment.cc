#include "executor/launch/launch_environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kLaunchers = enum_names<Launcher>({{Launcher::none, "none"},
                                                  {Launcher::torchrun, "torchrun"},
                                                  {Launcher::mpirun, "mpirun"},
                                                  {Launcher::srun, "srun"},
                                                  {Launcher::pods, "pods"}});

/// Names of one family's variables; empty = the family has none.
struct Family {
  Launcher launcher;
  std::string rank, world_size, local_rank, local_size, host, port;
  std::vector<std::string> required;  // complete when all are set
  std::vector<std::string> signs;     // present when one is set
  std::string start;                  // how such a process is started
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {Launcher::torchrun,
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       "MASTER_ADDR",
       "MASTER_PORT",
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"},
       {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
       "torchrun --no-python"},
      {Launcher::mpirun,
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       "MASTER_ADDR",
       "MASTER_PORT",
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
       "mpirun"},
      {Launcher::srun,
       "SLURM_PROCID",
       "SLURM_NTASKS",
       "SLURM_LOCALID",
       "",
       "SLURM_JOB_NODELIST",
       "SLURM_JOB_ID",
       {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_NODELIST", "SLURM_JOB_ID"},
       {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
       "srun"},
      {Launcher::pods,
       "PET_NODE_RANK",
       "PET_NNODES",
       "",
       "PET_NPROC_PER_NODE",
       "PET_MASTER_ADDR",
       "PET_MASTER_PORT",
       {"PET_NODE_RANK", "PET_NNODES", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
       {"PET_NODE_RANK", "PET_NNODES"},
       "torchrun inside the pod"},
  };
  return all;
}

/// Reads variables and reports what is wrong with them.
class Reader {
 public:
  Reader(const EnvironmentVariables& variables, Problems& problems)
      : variables_(variables), problems_(problems), problems_before_(problems.size()) {}

  std::string text(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string() : found->second;
  }
  /// Nothing was reported yet.
  bool good() const { return problems_.size() == problems_before_; }
  bool has(const std::string& name) const { return !text(name).empty(); }

  /// A number in [low, high]; `meaning` says where the bounds come from. `low` on failure.
  long number(const std::string& name, long low, long high, const std::string& meaning) {
    const std::string value = text(name);
    long parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error == std::errc() && end == value.data() + value.size() && parsed >= low &&
        parsed <= high) {
      return parsed;
    }
    report(name, "'" + value + "'", meaning);
    return low;
  }
  void report(const std::string& name, const std::string& found, const std::string& expected,
              const std::string& hint = {}) {
    problems_.push_back({"environment", name, found, expected, hint});
  }

 private:
  const EnvironmentVariables& variables_;
  Problems& problems_;
  std::size_t problems_before_;
};

constexpr long kMaxRanks = 1 << 24;

void read_ranks(const Family& family, Reader& reader, LaunchEnvironment& made) {
  made.launcher = family.launcher;
  made.world_size = static_cast<int>(
      reader.number(family.world_size, 1, kMaxRanks, "a number of processes, at least 1"));
  const std::string below = family.world_size + " = " + std::to_string(made.world_size);
  made.rank = static_cast<int>(
      reader.number(family.rank, 0, made.world_size - 1, "a rank from 0 to below " + below));
  if (!family.local_size.empty() && reader.has(family.local_size)) {
    made.local_size = static_cast<int>(
        reader.number(family.local_size, 1, made.world_size, "from 1 to " + below));
  }
  // The variable that local ranks are compared with has to be right itself.
  if (family.local_rank.empty() || !reader.good()) return;
  const int locals = made.local_size > 0 ? made.local_size : made.world_size;
  made.local_rank = static_cast<int>(reader.number(
      family.local_rank, 0, std::min(locals - 1, made.rank),
      "a rank from 0 to " + family.rank + " = " + std::to_string(made.rank) + " and below " +
          (made.local_size > 0 ? family.local_size + " = " + std::to_string(made.local_size)
                               : below)));
}

void read_meeting_point(const Family& family, Reader& reader, LaunchEnvironment& made) {
  made.master_host = reader.text(family.host);
  made.master_port = static_cast<int>(reader.number(family.port, 1, 65535, "a port, 1 to 65535"));
}

void finish_torchrun(Reader& reader, LaunchEnvironment& made) {
  made.agent_hosts_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  made.job = reader.text("TORCHELASTIC_RUN_ID") + "/" + reader.text("TORCHELASTIC_RESTART_COUNT");
}

void finish_slurm(Reader& reader, LaunchEnvironment& made) {
  made.master_host = first_host(reader.text("SLURM_JOB_NODELIST"));
  if (made.master_host.empty()) {
    reader.report("SLURM_JOB_NODELIST", "'" + reader.text("SLURM_JOB_NODELIST") + "'",
                  "a node list such as gnode[10,20-22]");
  }
  const long job = reader.number("SLURM_JOB_ID", 0, 4'000'000'000L, "a job number");
  // Below Linux's range for outgoing connections (32768 and up), as in common Slurm scripts.
  made.master_port = static_cast<int>(20000 + job % 10000);
  made.job = reader.text("SLURM_JOB_ID") + "/" + reader.text("SLURM_STEP_ID");
}

LaunchEnvironment read_family(const Family& family, Reader& reader) {
  LaunchEnvironment made;
  if (family.launcher != Launcher::pods) read_ranks(family, reader, made);
  switch (family.launcher) {
    case Launcher::torchrun:
      read_meeting_point(family, reader, made);
      finish_torchrun(reader, made);
      break;
    case Launcher::mpirun:
      if (reader.has(family.host) && reader.has(family.port)) {
        read_meeting_point(family, reader, made);
      }
      made.job = reader.text("PMIX_NAMESPACE");
      break;
    case Launcher::srun:
      finish_slurm(reader, made);
      break;
    case Launcher::pods: {
      const std::string per_node = reader.text("PET_NPROC_PER_NODE");
      if (!per_node.empty() && per_node != "1") {
        reader.report("PET_NPROC_PER_NODE", "'" + per_node + "' and no RANK, LOCAL_RANK",
                      "1, or ranks started by torchrun", "start with " + family.start);
      }
      Family pod = family;
      pod.local_size.clear();
      read_ranks(pod, reader, made);
      made.local_size = 1;
      read_meeting_point(family, reader, made);
      break;
    }
    case Launcher::none:
      break;
  }
  return made;
}

}  // namespace

std::string_view name_of(Launcher launcher) { return kLaunchers[launcher]; }

LaunchEnvironment read_launch_environment(const EnvironmentVariables& given, Problems& problems) {
  // Kubernetes and Ray give torchrun's meeting point under its argument names.
  EnvironmentVariables variables = given;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    const auto pet = given.find(std::string("PET_") + name);
    if (pet != given.end()) variables.emplace(name, pet->second);
  }
  Reader reader(variables, problems);
  const Family* incomplete = nullptr;
  for (const Family& family : families()) {
    bool complete = true, present = false;
    for (const std::string& name : family.required) complete = complete && reader.has(name);
    for (const std::string& name : family.signs) present = present || reader.has(name);
    if (complete) return read_family(family, reader);
    if (present && incomplete == nullptr) incomplete = &family;
  }
  if (incomplete != nullptr) {
    std::string set;
    for (const std::string& name : incomplete->required) {
      if (reader.has(name)) set += (set.empty() ? "" : ", ") + name;
    }
    for (const std::string& name : incomplete->required) {
      if (reader.has(name)) continue;
      reader.report(name, "not set, beside " + set, "set by the launcher",
                    "start with " + incomplete->start + ", or unset " + set);
    }
  }
  return {};
}

std::string first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      if (list.front() == ']') return {};
      host += list.front();
      list.remove_prefix(1);
      continue;
    }
    const std::size_t close = list.find(']');
    if (close == std::string_view::npos) return {};
    const std::string_view first = list.substr(1, list.find_first_of(",-]") - 1);
    if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos) return {};
    host += first;
    list.remove_prefix(close + 1);
  }
  return host;
}

EnvironmentVariables process_environment() {
  EnvironmentVariables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

}  // namespace tessera
