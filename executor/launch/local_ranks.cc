#include "executor/launch/local_ranks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/launch/launch_environment.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 2s;  // between asking a rank to end and making it
constexpr auto kPoll = 10ms;
constexpr int kNotStarted = 127;

/// The strings of an argument or environment vector, and pointers to them.
struct Words {
  std::vector<std::string> texts;

  std::vector<char*> pointers() {
    std::vector<char*> made;
    for (std::string& text : texts) made.push_back(text.data());
    made.push_back(nullptr);
    return made;
  }
};

/// torchrun's variables over those of this process.
Words environment_of(int rank, int ranks, int port) {
  EnvironmentVariables variables = process_environment();
  const std::string number = std::to_string(rank), count = std::to_string(ranks);
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string, std::string>>{
           {"RANK", number},
           {"LOCAL_RANK", number},
           {"WORLD_SIZE", count},
           {"LOCAL_WORLD_SIZE", count},
           {"MASTER_ADDR", "127.0.0.1"},
           {"MASTER_PORT", std::to_string(port)},
           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
           {"TORCHELASTIC_RUN_ID", "tessera-" + std::to_string(::getpid())},
           {"TORCHELASTIC_RESTART_COUNT", "0"}}) {
    variables[name] = value;
  }
  Words made;
  for (const auto& [name, value] : variables) made.texts.push_back(name + "=" + value);
  return made;
}

/// Between fork and exec only calls that are safe while other threads hold locks.
pid_t start_rank(Words line, Words environment) {
  const std::vector<char*> argv = line.pointers(), env = environment.pointers();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it ended before the line above
  ::execve(argv[0], argv.data(), env.data());
  ::_exit(kNotStarted);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Takes the ranks that have ended out of `running`; the code of the first that failed, or 0.
int reap(std::vector<pid_t>& running) {
  int failed = 0;
  std::erase_if(running, [&](pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != pid) return false;
    if (failed == 0) failed = code_of(status);
    return true;
  });
  return failed;
}

void end_all(std::vector<pid_t>& running) {
  for (const pid_t pid : running) ::kill(pid, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!running.empty() && std::chrono::steady_clock::now() < until) {
    reap(running);
    std::this_thread::sleep_for(kPoll);
  }
  for (const pid_t pid : running) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace

int run_local_ranks(const std::vector<std::string>& line, int ranks) {
  c10d::TCPStoreOptions options;
  options.port = 0;  // any that is free
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  std::vector<pid_t> running;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = start_rank({line}, environment_of(rank, ranks, store->getPort()));
    if (pid < 0) {
      const std::string why = std::strerror(errno);
      end_all(running);
      throw Error(ExitCode::missing, "cannot start rank " + std::to_string(rank) + ": " + why);
    }
    running.push_back(pid);
  }
  while (!running.empty()) {
    if (const int failed = reap(running)) {
      end_all(running);
      return failed;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return 0;
}

}  // namespace tessera
