// One process that scores responses: JSON lines in, JSON lines out, under limits.
//
// The child leads a process group of its own, so that what it forks ends with it; it dies with the
// thread that started it. Its standard input is a socket (a dead reader is an error, not a signal).
// One owner, one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// How a scoring process is started.
struct WorkerCommand {
  std::vector<std::string> words;  // program and arguments; a program without / is looked up
  double memory_gib = 0;           // address space of every process of it; 0 = no limit
  /// What it writes to its error output is added to this file while that is below kLargestLog;
  /// empty = it is dropped.
  std::filesystem::path log = {};
};
inline constexpr std::int64_t kLargestLog = std::int64_t{64} << 20;  // bytes

class WorkerProcess {
 public:
  using Clock = std::chrono::steady_clock;

  WorkerProcess() = default;
  ~WorkerProcess() { stop(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool running() const { return pid_ > 0; }
  /// Empty, or why the process could not be started.
  std::string start(const WorkerCommand& command);
  /// Kills the process group and waits for the process, once what it has printed is read.
  void stop();

  /// Queues a line (without its end), of which send() writes what the process takes.
  void queue(std::string_view line);
  bool has_unsent() const { return !unsent_.empty(); }
  /// False when the process reads no more.
  bool send();

  /// Reads what has arrived; false at the end of the output.
  bool receive();
  /// Takes the first whole line of what has arrived; false when there is none yet.
  bool take_line(std::string& line);
  /// Bytes that have arrived and are no whole line yet.
  std::size_t waiting() const { return received_.size(); }
  /// Reads the error output, of which the end is kept, and logs it; false once it is closed.
  bool receive_errors();
  /// The last line that the process wrote to its error output, or how it ended.
  std::string last_words() const;

  int input() const { return input_; }
  int output() const { return output_; }
  int errors() const { return errors_; }

 private:
  void log(std::size_t bytes);

  std::filesystem::path log_;
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;  // file descriptors of this side; -1 = closed
  std::string unsent_, received_, error_tail_;
  std::string unlogged_;  // of the error output: a line that has no end yet
};

}  // namespace tessera
