// `tessera` as a child process of a test, to be killed and waited for.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/programs.h"

namespace tessera {

/// `tessera run` as a child process of the test, its messages kept in a file.
class RunningProgram {
 public:
  RunningProgram(std::vector<std::string> words, fs::path messages)
      : messages_(std::move(messages)) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::signal(SIGHUP, SIG_DFL);  // whatever the test was started with
      const int out = ::open(messages_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(out, STDOUT_FILENO);
      ::dup2(out, STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~RunningProgram() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  RunningProgram(const RunningProgram&) = delete;

  pid_t pid() const { return pid_; }
  bool ended() {
    int status = 0;
    if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    return ended_;
  }
  /// Exit code, or nullopt when it runs longer than `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit) {
    const std::chrono::steady_clock::time_point until = std::chrono::steady_clock::now() + limit;
    while (!ended() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return ended_ ? std::optional<int>(code_) : std::nullopt;
  }
  std::string messages() const { return text_of(messages_); }

 private:
  fs::path messages_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int code_ = -1;
};

}  // namespace tessera
