// tessera doctor: what this machine has for Tessera, what is missing and how to get it; of a run
// what became of it and what to do.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/dispatch.h"
#include "cli/processes/run_diagnosis.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

enum class Health { ok, warning, failure };

struct Finding {
  std::string subject;
  Health verdict = Health::ok;
  std::string found;
  std::string remedy;  // empty when all is well
};

/// First line that a shell command prints, or empty.
std::string first_line(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  char buffer[512] = {};
  std::string line;
  if (std::fgets(buffer, sizeof buffer, pipe) != nullptr) line = buffer;
  pclose(pipe);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

Finding program(const std::string& name) {
  try {
    return {name, Health::ok, find_program(name).string(), {}};
  } catch (const Error& error) {
    return {name, Health::warning, "not built", error.problems().front().found};
  }
}

Finding processor() {
  const unsigned cores = std::thread::hardware_concurrency();
  const auto bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  char text[80];
  std::snprintf(text, sizeof text, "%u cores, %.1f GiB of memory", cores,
                static_cast<double>(bytes) / (1LL << 30));
  return {"machine", Health::ok, text, {}};
}

Finding gpus() {
  const std::string line =
      first_line("nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader");
  if (line.empty()) {
    return {"GPU", Health::warning, "none, or no driver",
            "runs use CPU ranks; GPUs need NVIDIA's driver (nvidia-smi must work)"};
  }
  const std::string count = first_line("nvidia-smi --list-gpus | wc -l");
  return {"GPU", Health::ok, count + " x " + line, {}};
}

Finding launcher(const std::string& name, const std::string& purpose, const std::string& remedy) {
  const std::string version = first_line(name + " --version");
  if (version.empty()) return {name, Health::warning, "missing: " + purpose, remedy};
  return {name, Health::ok, version, {}};
}

/// Python files, and the code of answers that unit tests run.
Finding python() {
  const std::string version = first_line("python3 -c 'import sys; print(sys.version.split()[0])'");
  if (!version.empty()) return {"python3", Health::ok, version, {}};
  return {"python3", Health::warning,
          "missing: Python files and unit tests cannot score answers (rules and programs can)",
          "apt install python3, or name another one in reward.workers.python"};
}

/// As a run looks for it: it has to be there, and user namespaces have to be allowed.
Finding bubblewrap() {
  const std::string version = first_line("bwrap --version");
  const std::string works = first_line(
      "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-net --unshare-pid "
      "/bin/sh -c 'echo works'");
  const std::string without =
      "programs that score answers run without it, with the network and the user's files";
  if (works == "works") return {"bubblewrap", Health::ok, version, {}};
  if (version.empty()) {
    return {"bubblewrap", Health::warning, "missing: " + without, "apt install bubblewrap"};
  }
  return {"bubblewrap", Health::warning, version + " may not be used here: " + without,
          "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, and AppArmor's)"};
}

/// The module that tessera-run opens where data is Parquet.
Finding parquet() {
  constexpr const char* kModule = "libtessera_parquet.so";
  std::string reason = "not built";
  try {
    const std::filesystem::path runner = find_program("tessera-run").parent_path();
    for (const auto& file : {runner / kModule, runner / ".." / "lib" / kModule}) {
      if (::access(file.c_str(), R_OK) != 0) continue;
      if (::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) {
        return {"Parquet", Health::ok, file.lexically_normal().string(), {}};
      }
      reason = ::dlerror();
    }
  } catch (const Error&) {  // said in a line of its own
  }
  return {"Parquet", Health::warning, reason + ": runs read JSON lines alone",
          "scripts/setup.sh installs pyarrow; then run cmake and build again"};
}

Finding nvlink_multicast() {
  const char* value = std::getenv("NCCL_NVLS_ENABLE");
  return {"NCCL_NVLS_ENABLE", Health::ok, value == nullptr ? "not set" : value, {}};
}

Finding shared_memory() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) {
    return {"/dev/shm", Health::failure, "not mounted",
            "NCCL and MPI need it: mount a tmpfs there"};
  }
  const double gib =
      static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize) / (1LL << 30);
  char text[40];
  std::snprintf(text, sizeof text, "%.2f GiB", gib);
  if (gib >= 1.0) return {"/dev/shm", Health::ok, text, {}};
  return {"/dev/shm", Health::warning, text, "NCCL and MPI want 1 GiB (docker: --shm-size=1g)"};
}

Finding open_files() {
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string found = std::to_string(limit.rlim_cur);
  if (limit.rlim_cur >= 1024) return {"open files", Health::ok, found, {}};
  return {"open files", Health::warning, found, "ulimit -n 4096"};
}

const char* label(Health verdict) {
  return verdict == Health::ok ? "OK  " : verdict == Health::warning ? "WARN" : "FAIL";
}

void print(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::printf("%s  %-16s %s\n", label(finding.verdict), finding.subject.c_str(),
                finding.found.c_str());
    if (!finding.remedy.empty()) std::printf("      %-16s -> %s\n", "", finding.remedy.c_str());
  }
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"ok", finding.verdict == Health::ok},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  std::printf(
      "%s\n",
      nlohmann::ordered_json{{"version", TESSERA_VERSION}, {"findings", list}}.dump(2).c_str());
}

void print_lines(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::printf("%s\n", title);
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
}

std::string ending_of(const RunDiagnosis& run) {
  if (run.ranks.empty() && run.unread.empty()) return "no rank has started";
  if (run.alive) return "it runs";
  return run.verdict.message.empty() ? "it has ended as planned" : run.verdict.message;
}

/// The newest ones of a rank, oldest first.
std::vector<std::string> last_collectives(const RunDiagnosis& run, int rank) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> lines;
  for (const FlightRecord& record : run.collectives.records) {
    if (record.rank != rank) continue;
    const std::size_t begin = record.last.size() - std::min(kMost, record.last.size());
    for (std::size_t i = begin; i < record.last.size(); ++i) {
      const LastCollective& what = record.last[i];
      lines.push_back(line_of(what, record.groups[static_cast<std::size_t>(what.group)].name));
    }
  }
  return lines;
}

/// Whom ranks wait for, in which collectives, and what of the records cannot be read.
std::vector<std::string> sentences_about(const RunDiagnosis& run) {
  std::vector<std::string> sentences = sentences_of(run.waits, run.collectives.records);
  const std::vector<std::string>& troubles = run.collectives.troubles;
  sentences.insert(sentences.end(), troubles.begin(), troubles.end());
  return sentences;
}

void print(const RunDiagnosis& run) {
  std::printf("%s\n", ending_of(run).c_str());
  if (!run.holder.empty()) std::printf("held by %s\n", run.holder.c_str());
  if (run.last_step) {
    std::printf("last step %lld", static_cast<long long>(*run.last_step));
    if (run.checkpoint) {
      std::printf(", newest checkpoint of step %lld", static_cast<long long>(*run.checkpoint));
    }
    std::printf("\n");
  }
  std::vector<std::string> ranks;
  for (const RankFinding& rank : run.ranks) {
    ranks.push_back(describe(rank));
    for (const std::string& line : last_collectives(run, rank.status.rank)) {
      ranks.push_back("  " + line);
    }
    for (const std::string& line : rank.stacks) ranks.push_back("  " + line);
  }
  for (const UnreadRank& rank : run.unread) ranks.push_back(describe(rank));
  print_lines("ranks", ranks);
  print_lines("collectives", sentences_about(run));
  std::vector<std::string> memory;
  for (const auto& [name, value] : run.memory) {
    char text[200];
    std::snprintf(text, sizeof text, "%-40s %.4g", name.c_str(), value);
    memory.emplace_back(text);
  }
  print_lines("memory, in the last step", memory);
  if (!run.out_of_memory.empty()) print_lines("out of memory", {run.out_of_memory});
  print_lines("end of the log", run.log_tail);
  print_lines("what to do", run.advice);
}

using Json = nlohmann::ordered_json;

Json json_of(const LastCollective& what, const std::string& group) {
  return {{"group", group},
          {"kind", name_of(what.kind)},
          {"sequence", what.sequence},
          {"bytes", what.bytes},
          {"type", name_of(what.type)},
          {"root", what.root < 0 ? Json() : Json(what.root)},
          {"peers", what.peers},
          {"phase", what.phase},
          {"step", what.step},
          {"state", name_of(what.state)},
          {"begun_ns", what.begun_ns},
          {"ended_ns", what.ended_ns > 0 ? Json(what.ended_ns) : Json()}};
}

/// Of every rank with a record.
Json records_json(const RunDiagnosis& run) {
  Json records = Json::array();
  for (const FlightRecord& record : run.collectives.records) {
    Json groups = Json::array(), last = Json::array();
    for (const CollectiveGroup& group : record.groups) {
      groups.push_back({{"name", group.name},
                        {"ranks", group.size},
                        {"index", group.index},
                        {"collectives_begun", group.begun.collectives},
                        {"collectives_ended", group.ended.collectives},
                        {"exchanges_begun", group.begun.exchanges},
                        {"exchanges_ended", group.ended.exchanges}});
    }
    for (const LastCollective& what : record.last) {
      last.push_back(json_of(what, record.groups[static_cast<std::size_t>(what.group)].name));
    }
    records.push_back({{"rank", record.rank},
                       {"damaged", record.damaged},
                       {"groups", std::move(groups)},
                       {"last", std::move(last)}});
  }
  return records;
}

Json collectives_json(const RunDiagnosis& run) {
  Json waits = Json::array(), mismatches = Json::array();
  for (const CollectiveWait& wait : run.waits.waits) {
    waits.push_back({{"what", json_of(wait.what, wait.group)},
                     {"group_ranks", wait.size},
                     {"waiting", wait.waiting},
                     {"absent", wait.absent},
                     {"left", wait.left},
                     {"since_ns", wait.since_ns}});
  }
  for (const CollectiveMismatch& wrong : run.waits.mismatches) {
    mismatches.push_back(
        {{"ranks", {wrong.rank, wrong.other}},
         {"what", {json_of(wrong.of_rank, wrong.group), json_of(wrong.of_other, wrong.group)}}});
  }
  return {{"says", sentences_about(run)},
          {"waited_for", run.waits.waited_for},
          {"waits", std::move(waits)},
          {"mismatches", std::move(mismatches)},
          {"records", records_json(run)}};
}

void print_json(const RunDiagnosis& run) {
  Json ranks = Json::array();
  for (const RankFinding& rank : run.ranks) {
    ranks.push_back({{"rank", rank.status.rank},
                     {"phase", rank.status.phase},
                     {"step", rank.status.step},
                     {"alive", rank.alive},
                     {"silent", rank.silent},
                     {"waiting", rank.status.waiting},
                     {"says", describe(rank)},
                     {"stacks", rank.stacks}});
  }
  Json unread = Json::array();
  for (const UnreadRank& rank : run.unread) {
    unread.push_back({{"rank", rank.rank}, {"says", describe(rank)}});
  }
  Json memory = Json::object();
  for (const auto& [name, value] : run.memory) memory[name] = value;
  Json out{{"ending", ending_of(run)},
           {"exit_code", run.verdict.exit_code},
           {"alive", run.alive},
           {"last_step", run.last_step ? Json(*run.last_step) : Json()},
           {"checkpoint", run.checkpoint ? Json(*run.checkpoint) : Json()},
           {"ranks", std::move(ranks)},
           {"unread", std::move(unread)},
           {"collectives", collectives_json(run)},
           {"memory", std::move(memory)},
           {"log", run.log_tail},
           {"advice", run.advice}};
  if (!run.out_of_memory.empty())
    out["out_of_memory"] = Json::parse(run.out_of_memory, nullptr, false);
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

struct DoctorCommand {
  std::string run;
  bool stacks = false, json = false;
};

void look_at_run(const DoctorCommand& asked) {
  Problems problems;
  const auto run = diagnose(asked.run, asked.stacks, problems);
  if (!run) throw Error(ExitCode::bad_input, std::move(problems));
  asked.json ? print_json(*run) : print(*run);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Report what this machine has and lacks, or what became of a run");
  auto asked = std::make_shared<DoctorCommand>();
  command->add_option("run", asked->run, "A run's folder; without it the machine");
  command->add_flag("--stacks", asked->stacks, "Of a run that lives: what its threads do, by gdb");
  command->add_flag("--json", asked->json, "Print JSON");
  command->callback([asked] {
    if (!asked->run.empty()) return look_at_run(*asked);
    const std::vector<Finding> findings{
        processor(),
        gpus(),
        program("tessera-run"),
        program("tessera-gui"),
        launcher("mpirun", "CPU ranks cannot be started", "apt install openmpi-bin"),
        python(),
        bubblewrap(),
        parquet(),
        launcher("torchrun", "only needed for GPU ranks on several hosts",
                 "it comes with torch: put its bin on PATH"),
        launcher("nvcc", "only needed to build CUDA kernels", "scripts/setup.sh"),
        nvlink_multicast(),
        shared_memory(),
        open_files()};
    asked->json ? print_json(findings) : print(findings);
    for (const Finding& finding : findings) {
      if (finding.verdict == Health::failure) {
        throw Error(ExitCode::check_failed, finding.subject + ": " + finding.found);
      }
    }
  });
}

}  // namespace tessera
