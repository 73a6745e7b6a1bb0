// A server as a child process that writes its output to a file.
//
// The child leads a process group of its own, which is ended with it; it gets SIGTERM when the
// thread that started it dies, so that it never outlives the run. It starts without what belongs to
// this rank alone: the launcher's variables, torch's allocator settings, the rank's processors. One
// owner, one thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct ServerCommand {
  std::vector<std::string> words;            // program and arguments; looked up where it has no /
  std::map<std::string, std::string> added;  // to the environment
  std::filesystem::path log;                 // of its output and its errors; overwritten
};

class ServerProcess {
 public:
  ServerProcess() = default;
  ~ServerProcess() { stop(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Throws Error: missing where the program is not there, io where its log cannot be written.
  void start(const ServerCommand& command);
  /// -1 = never started, or stopped.
  pid_t pid() const { return pid_; }
  /// Empty while it runs, or was never started; else "exit code 3" or "signal 9".
  std::string ended();
  /// The last lines of its log.
  std::string last_lines(std::size_t lines = 12) const;
  /// SIGTERM to the process group, and SIGKILL where it has not ended `patience_s` later.
  void stop(double patience_s = 20);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;  // of waitpid, once it has ended
  std::filesystem::path log_;
};

}  // namespace tessera
