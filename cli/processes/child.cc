#include "cli/processes/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLook = 5ms;
constexpr auto kSweep = 20ms;
constexpr auto kPatience = 2s;  // between asking a program to end and killing it

/// Becomes the program. Only calls that are safe between fork and exec.
[[noreturn]] void become(pid_t parent, const std::vector<char*>& argv) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);               // ends with its parent, whatever ends that
  if (::getppid() != parent) ::_exit(kNotStarted);  // it ended before the line above
  const int null = ::open("/dev/null", O_RDONLY);   // a background group must not read the terminal
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_DFL);
  ::execvp(argv[0], argv.data());
  ::_exit(kNotStarted);
}

/// Processes whose parent is this one.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = ::readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream in("/proc/" + std::string(entry->d_name) + "/stat");
    std::string stat;
    std::getline(in, stat);
    const std::size_t close = stat.rfind(')');
    if (close == std::string::npos || close + 4 > stat.size()) continue;
    if (std::atoi(stat.c_str() + close + 4) == ::getpid()) found.push_back(pid);
  }
  ::closedir(proc);
  return found;
}

bool ended(pid_t pid, int& status) { return ::waitpid(pid, &status, WNOHANG) == pid; }

/// The program first, then what it has started.
void end_child(pid_t pid) {
  ::kill(-pid, SIGTERM);
  int status = 0;
  const Clock::time_point until = Clock::now() + kPatience;
  while (!ended(pid, status) && Clock::now() < until) std::this_thread::sleep_for(kLook);
  ::kill(-pid, SIGKILL);
  kill_children();
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

pid_t start_child(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(parent, argv);
  if (pid < 0) throw Error(ExitCode::internal, "fork failed");
  ::setpgid(pid, pid);  // both sides: whoever comes first
  return pid;
}

int exit_code_of_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void kill_children() {
  const Clock::time_point until = Clock::now() + 1s;
  while (Clock::now() < until) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = children();
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(kSweep);
  }
}

std::optional<int> run_child(const std::vector<std::string>& command,
                             const std::function<bool()>& cancelled) {
  if (cancelled()) return std::nullopt;
  adopt_orphans();
  const pid_t pid = start_child(command);
  for (int status = 0;; std::this_thread::sleep_for(kLook)) {
    if (ended(pid, status)) {
      const int code = exit_code_of_status(status);
      if (code == kNotStarted) throw Error(ExitCode::missing, command[0] + " cannot be executed");
      return code;
    }
    if (!cancelled()) continue;
    end_child(pid);
    return std::nullopt;
  }
}

}  // namespace tessera
