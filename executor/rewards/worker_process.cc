#include "executor/rewards/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tessera {
namespace {

constexpr std::size_t kErrorTail = 4096;
constexpr std::size_t kReadAtOnce = 1 << 16;

void close_one(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

bool make_pipe(int (&ends)[2]) { return ::pipe2(ends, O_CLOEXEC) == 0; }

bool make_nonblocking(int descriptor) {
  return ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0;
}

/// The descriptors that the child has as 0, 1 and 2, and where it tells why it could not start.
struct ChildEnds {
  int input, output, errors, failure;
};

/// Runs in the child between fork and exec: system calls alone.
[[noreturn]] void become(char* const* words, const ChildEnds& ends, rlim_t memory, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it has died already
  const rlimit no_core{0, 0}, most{memory, memory};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (memory > 0) ::setrlimit(RLIMIT_AS, &most);
  ::dup2(ends.input, 0);
  ::dup2(ends.output, 1);
  ::dup2(ends.errors, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGXFSZ, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::execvp(words[0], words);
  const int error = errno;
  [[maybe_unused]] const auto told = ::write(ends.failure, &error, sizeof error);
  ::_exit(127);
}

/// Appends what can be read without waiting; false at the end of the stream.
bool read_into(int descriptor, std::string& text) {
  std::array<char, kReadAtOnce> buffer;
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

std::string WorkerProcess::start(const WorkerCommand& command) {
  stop();
  unsent_.clear();
  received_.clear();
  error_tail_.clear();
  log_ = command.log;
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, failure[2] = {-1, -1};
  const bool made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0 &&
                    make_pipe(out) && make_pipe(err) && make_pipe(failure);
  const auto memory = static_cast<rlim_t>(command.memory_gib * (1 << 30));
  const pid_t parent = ::getpid();
  const pid_t child = made ? ::fork() : -1;
  if (child == 0) become(words.data(), {in[1], out[1], err[1], failure[1]}, memory, parent);
  int error = child < 0 ? errno : 0;
  for (int* end : {&in[1], &out[1], &err[1], &failure[1]}) close_one(*end);
  if (child > 0) {
    ::setpgid(child, child);  // whoever of the two is first
    if (::read(failure[0], &error, sizeof error) != sizeof error) error = 0;
  }
  close_one(failure[0]);
  pid_ = child;
  input_ = in[0];
  output_ = out[0];
  errors_ = err[0];
  if (error != 0) {
    stop();
    return command.words[0] + ": " + std::strerror(error);
  }
  for (const int end : {input_, output_, errors_}) make_nonblocking(end);
  return {};
}

void WorkerProcess::stop() {
  if (errors_ >= 0) receive_errors();
  log(unlogged_.size());
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  for (int* end : {&input_, &output_, &errors_}) close_one(*end);
}

void WorkerProcess::queue(std::string_view line) { unsent_.append(line).push_back('\n'); }

bool WorkerProcess::send() {
  const ssize_t count = ::send(input_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  unsent_.erase(0, static_cast<std::size_t>(count));
  return true;
}

bool WorkerProcess::receive() { return read_into(output_, received_); }

bool WorkerProcess::take_line(std::string& line) {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return false;
  line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

bool WorkerProcess::receive_errors() {
  std::string fresh;
  const bool open = read_into(errors_, fresh);
  unlogged_ += fresh;
  error_tail_ += fresh;
  // Whole lines, as other processes write the file, too.
  log(unlogged_.size() > kReadAtOnce ? unlogged_.size() : unlogged_.rfind('\n') + 1);
  if (error_tail_.size() > kErrorTail) error_tail_.erase(0, error_tail_.size() - kErrorTail);
  if (!open) close_one(errors_);
  return open;
}

/// The first bytes of what is not logged. A disk that takes nothing costs what was printed.
void WorkerProcess::log(std::size_t bytes) {
  const int file = bytes == 0 || log_.empty()
                       ? -1
                       : ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  struct stat known {};
  if (file >= 0 && ::fstat(file, &known) == 0 && known.st_size < kLargestLog) {
    [[maybe_unused]] const auto written = ::write(file, unlogged_.data(), bytes);
  }
  if (file >= 0) ::close(file);
  unlogged_.erase(0, bytes);
}

std::string WorkerProcess::last_words() const {
  std::string_view text = error_tail_;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

}  // namespace tessera
