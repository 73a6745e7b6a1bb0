// tessera doctor: what this machine has for Tessera, what is missing and how to get it.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
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
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

enum class Verdict { ok, warning, failure };

struct Finding {
  std::string subject;
  Verdict verdict = Verdict::ok;
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
    return {name, Verdict::ok, find_program(name).string(), {}};
  } catch (const Error& error) {
    return {name, Verdict::warning, "not built", error.problems().front().found};
  }
}

Finding processor() {
  const unsigned cores = std::thread::hardware_concurrency();
  const auto bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  char text[80];
  std::snprintf(text, sizeof text, "%u cores, %.1f GiB of memory", cores,
                static_cast<double>(bytes) / (1LL << 30));
  return {"machine", Verdict::ok, text, {}};
}

Finding gpus() {
  const std::string line =
      first_line("nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader");
  if (line.empty()) {
    return {"GPU", Verdict::warning, "none, or no driver",
            "runs use CPU ranks; GPUs need NVIDIA's driver (nvidia-smi must work)"};
  }
  const std::string count = first_line("nvidia-smi --list-gpus | wc -l");
  return {"GPU", Verdict::ok, count + " x " + line, {}};
}

Finding launcher(const std::string& name, const std::string& purpose, const std::string& remedy) {
  const std::string version = first_line(name + " --version");
  if (version.empty()) return {name, Verdict::warning, "missing: " + purpose, remedy};
  return {name, Verdict::ok, version, {}};
}

/// Python files, and the code of answers that unit tests run.
Finding python() {
  const std::string version = first_line("python3 -c 'import sys; print(sys.version.split()[0])'");
  if (!version.empty()) return {"python3", Verdict::ok, version, {}};
  return {"python3", Verdict::warning,
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
  if (works == "works") return {"bubblewrap", Verdict::ok, version, {}};
  if (version.empty()) {
    return {"bubblewrap", Verdict::warning, "missing: " + without, "apt install bubblewrap"};
  }
  return {"bubblewrap", Verdict::warning, version + " may not be used here: " + without,
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
        return {"Parquet", Verdict::ok, file.lexically_normal().string(), {}};
      }
      reason = ::dlerror();
    }
  } catch (const Error&) {  // said in a line of its own
  }
  return {"Parquet", Verdict::warning, reason + ": runs read JSON lines alone",
          "scripts/setup.sh installs pyarrow; then run cmake and build again"};
}

Finding nvlink_multicast() {
  const char* value = std::getenv("NCCL_NVLS_ENABLE");
  return {"NCCL_NVLS_ENABLE", Verdict::ok, value == nullptr ? "not set" : value, {}};
}

Finding shared_memory() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) {
    return {"/dev/shm", Verdict::failure, "not mounted",
            "NCCL and MPI need it: mount a tmpfs there"};
  }
  const double gib =
      static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize) / (1LL << 30);
  char text[40];
  std::snprintf(text, sizeof text, "%.2f GiB", gib);
  if (gib >= 1.0) return {"/dev/shm", Verdict::ok, text, {}};
  return {"/dev/shm", Verdict::warning, text, "NCCL and MPI want 1 GiB (docker: --shm-size=1g)"};
}

Finding open_files() {
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string found = std::to_string(limit.rlim_cur);
  if (limit.rlim_cur >= 1024) return {"open files", Verdict::ok, found, {}};
  return {"open files", Verdict::warning, found, "ulimit -n 4096"};
}

const char* label(Verdict verdict) {
  return verdict == Verdict::ok ? "OK  " : verdict == Verdict::warning ? "WARN" : "FAIL";
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
                    {"ok", finding.verdict == Verdict::ok},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  std::printf(
      "%s\n",
      nlohmann::ordered_json{{"version", TESSERA_VERSION}, {"findings", list}}.dump(2).c_str());
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Report what this machine has and lacks");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] {
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
    *json ? print_json(findings) : print(findings);
    for (const Finding& finding : findings) {
      if (finding.verdict == Verdict::failure) {
        throw Error(ExitCode::check_failed, finding.subject + ": " + finding.found);
      }
    }
  });
}

}  // namespace tessera
