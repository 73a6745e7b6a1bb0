#include "executor/vllm/server_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <string_view>
#include <thread>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kLogTail = 1 << 16;

/// What a launcher or this rank has set for itself. torch's expandable segments exclude vLLM's
/// sleep mode (vllm/device_allocator/cumem.py); with a launcher's TORCHELASTIC_USE_AGENT_STORE
/// vLLM's workers wait for ever for a store that nobody serves (torch/distributed/rendezvous.py).
bool of_this_rank(std::string_view variable) {
  static constexpr std::array kNames = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "OMP_NUM_THREADS",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
  static constexpr std::array kFamilies = {"OMPI_", "PMIX_",  "PMI_",         "PRTE_",
                                           "PET_",  "SLURM_", "TORCHELASTIC_"};
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* one) { return name == one; }) ||
         std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](const char* family) { return name.starts_with(family); });
}

/// A bundle puts its own libraries first; the server gets the path that was there before.
constexpr std::string_view kOuterPath = "TESSERA_OUTER_LIBRARY_PATH=", kPath = "LD_LIBRARY_PATH=";

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  const char* const outer = ::getenv("TESSERA_OUTER_LIBRARY_PATH");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::string name(variable.substr(0, variable.find('=')));
    const bool replaced =
        outer != nullptr && (variable.starts_with(kPath) || variable.starts_with(kOuterPath));
    if (!of_this_rank(variable) && !replaced && !added.contains(name)) {
      result.emplace_back(variable);
    }
  }
  if (outer != nullptr) result.push_back(std::string(kPath) + outer);
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs in the child between fork and exec: system calls alone.
[[noreturn]] void become(char* const* words, char* const* environment, int log, int failure,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it has died already
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  ::sched_setaffinity(0, sizeof all, &all);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int handled : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE}) ::signal(handled, SIG_DFL);
  ::execvpe(words[0], words, environment);
  const int error = errno;
  [[maybe_unused]] const auto told = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

/// What the child tells of a failed exec; 0 = it runs.
int failure_of(int pipe_end) {
  int error = 0;
  return ::read(pipe_end, &error, sizeof error) == sizeof error ? error : 0;
}

}  // namespace

void ServerProcess::start(const ServerCommand& command) {
  stop();
  status_.reset();
  log_ = command.log;
  const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw Error(ExitCode::io, log_.string() + ": " + std::strerror(errno));
  std::vector<std::string> words = command.words, variables = environment_with(command.added);
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
  std::array<int, 2> failure{-1, -1};
  const bool made = ::pipe2(failure.data(), O_CLOEXEC) == 0;
  const pid_t parent = ::getpid();
  const pid_t child = made ? ::fork() : -1;
  if (child == 0) become(arguments.data(), environment.data(), log, failure[1], parent);
  int error = child < 0 ? errno : 0;
  for (const int end : {log, failure[1]}) {
    if (end >= 0) ::close(end);
  }
  if (child > 0) {
    ::setpgid(child, child);  // whoever of the two is first
    error = failure_of(failure[0]);
    pid_ = child;
  }
  if (failure[0] >= 0) ::close(failure[0]);
  if (error == 0) return;
  stop();
  throw Error(ExitCode::missing, command.words[0] + ": " + std::strerror(error));
}

std::string ServerProcess::ended() {
  if (pid_ > 0 && !status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  }
  if (!status_) return {};
  return WIFSIGNALED(*status_) ? "signal " + std::to_string(WTERMSIG(*status_))
                               : "exit code " + std::to_string(WEXITSTATUS(*status_));
}

std::string ServerProcess::last_lines(std::size_t lines) const {
  std::ifstream in(log_, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : 0;
  in.seekg(std::max<std::streamoff>(0, size - static_cast<std::streamoff>(kLogTail)));
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += "\n  " + line;
  return text;
}

void ServerProcess::stop(double patience_s) {
  if (pid_ <= 0) return;
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(patience_s);
  ::kill(-pid_, SIGTERM);
  while (ended().empty() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(-pid_, SIGKILL);  // and whoever of its group is left
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_ || errno != EINTR) status_ = status;
  }
  pid_ = -1;
}

}  // namespace tessera
