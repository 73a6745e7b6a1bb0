#include "simulator/timeline/rank_status.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/workload.h"

namespace tessera {
namespace {

constexpr std::chrono::milliseconds kBeat{200};
constexpr const char* kNoFile = "no such file";
constexpr std::string_view kRequeue = "requeue";  // in RUN/stop
constexpr std::array<char, 8> kMagic = {'T', 'S', 'R', 'R', 'A', 'N', 'K', '2'};

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);  // safe in a signal handler
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

/// The file. The current phase is phases[turn % 2]: a rank killed while it writes the other one
/// leaves a whole phase behind.
struct RankStatusFile::Record {
  struct Phase {
    std::array<char, 24> name;
    std::int64_t step, since_ns;
  };
  std::array<char, 8> magic;
  std::int32_t rank, pid;
  std::atomic<std::int32_t> state, exit_code;
  std::atomic<std::int64_t> ended_ns;
  std::atomic<std::int64_t> turn;
  std::atomic<std::int64_t> beats;
  std::atomic<std::int32_t> waiting;
  double stall_limit_s;
  std::array<Phase, 2> phases;

  /// Only the first end counts.
  void end(RankState as, int code) {
    auto running = static_cast<std::int32_t>(RankState::running);
    if (state.compare_exchange_strong(running, static_cast<std::int32_t>(as))) {
      exit_code = code;
      ended_ns = now_ns();
    }
  }
};

namespace {
std::atomic<void*> handled_record = nullptr;  // the record that SIGTERM ends
}

void RankStatusFile::on_terminate(int signal) {
  if (void* record = handled_record) static_cast<Record*>(record)->end(RankState::terminated, 0);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

RankStatusFile::RankStatusFile(const std::filesystem::path& run, int rank, const RankLife& life)
    : waiting_(life.waiting) {
  const std::filesystem::path file = run / "ranks" / std::to_string(rank);
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  // A new file, moved into place: who still has the old one mapped does not see this rank.
  const std::string fresh = file.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  void* mapped = MAP_FAILED;
  if (fd >= 0 && ::ftruncate(fd, sizeof(Record)) == 0) {
    mapped = ::mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (mapped == MAP_FAILED) {
    throw Error(ExitCode::io, file.string() + ": " + std::strerror(error));
  }
  record_ = new (mapped) Record{};
  record_->magic = kMagic;
  record_->rank = rank;
  record_->pid = static_cast<std::int32_t>(::getpid());
  record_->stall_limit_s = life.stall_limit_s;
  enter("load", 0);
  if (::rename(fresh.c_str(), file.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    ::munmap(record_, sizeof(Record));
    throw Error(ExitCode::io, file.string() + ": " + reason);
  }
  if (life.marks_end) {
    handled_record = record_;
    struct sigaction action {};
    action.sa_handler = on_terminate;
    ::sigaction(SIGTERM, &action, nullptr);
  }
  heart_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
}

/// Signals are for the threads that the process has beside this one.
void RankStatusFile::beat(const std::stop_token& stop) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    record_->waiting = waiting_ != nullptr && *waiting_ ? 1 : 0;
    record_->beats += 1;
    ended.wait_for(lock, stop, kBeat, [] { return false; });
  }
}

RankStatusFile::~RankStatusFile() {
  heart_.request_stop();
  heart_.join();
  handled_record = nullptr;
  ::munmap(record_, sizeof(Record));
}

void RankStatusFile::enter(std::string_view phase, std::int64_t step) {
  const std::int64_t next = record_->turn + 1;
  Record::Phase& into = record_->phases[static_cast<std::size_t>(next % 2)];
  into.name.fill(0);
  std::copy_n(phase.begin(), std::min(phase.size(), into.name.size() - 1), into.name.begin());
  into.step = step;
  into.since_ns = now_ns();
  record_->turn = next;
}

void RankStatusFile::finish(int exit_code) { record_->end(RankState::finished, exit_code); }

std::optional<RankStatus> read_rank_status(const std::filesystem::path& file, std::string* fault) {
  using Record = RankStatusFile::Record;
  const auto refuse = [fault](std::string why) {
    if (fault != nullptr) *fault = std::move(why);
    return std::nullopt;
  };
  const int fd = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return refuse(errno == ENOENT ? kNoFile : std::strerror(errno));
  struct stat about {};
  void* mapped = MAP_FAILED;
  const bool known = ::fstat(fd, &about) == 0;
  const bool whole = known && S_ISREG(about.st_mode) && about.st_size == sizeof(Record);
  if (whole) mapped = ::mmap(nullptr, sizeof(Record), PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (known && !S_ISREG(about.st_mode)) return refuse("not a regular file");
  if (known && !whole) {
    return refuse(std::to_string(about.st_size) + " bytes instead of " +
                  std::to_string(sizeof(Record)));
  }
  if (mapped == MAP_FAILED) return refuse(std::strerror(error));
  const auto* record = static_cast<const Record*>(mapped);
  std::optional<RankStatus> status;
  const std::int32_t state = record->state;
  if (record->magic == kMagic && state >= 0 && state <= 2) {
    const Record::Phase& phase = record->phases[static_cast<std::size_t>(record->turn & 1)];
    status = RankStatus{
        .rank = record->rank,
        .pid = record->pid,
        .phase = std::string(phase.name.data(), ::strnlen(phase.name.data(), phase.name.size())),
        .step = phase.step,
        .phase_since_ns = phase.since_ns,
        .ended_ns = record->ended_ns,
        .state = static_cast<RankState>(state),
        .exit_code = record->exit_code,
        .beats = record->beats,
        .waiting = record->waiting != 0,
        .stall_limit_s = record->stall_limit_s};
  }
  ::munmap(mapped, sizeof(Record));
  if (!status) return refuse("not what a rank of this version writes");
  return status;
}

RankFiles read_rank_files(const std::filesystem::path& run, int ranks) {
  constexpr std::size_t kMostDigits = 6;  // of a rank's number
  constexpr std::size_t kMostMissing = 256;
  std::map<int, std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / "ranks", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name.size() <= kMostDigits) files.emplace(std::stoi(name), entry.path());
  }
  RankFiles found;
  std::size_t missing = 0;
  if (files.empty()) return found;
  ranks = std::max(ranks, files.rbegin()->first + 1);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto file = files.find(rank);
    std::string fault = kNoFile;
    std::optional<RankStatus> status;
    if (file != files.end()) status = read_rank_status(file->second, &fault);
    if (status && status->rank != rank) {
      fault = "the file of rank " + std::to_string(status->rank);
      status.reset();
    }
    if (status) {
      found.ranks.push_back(*std::move(status));
    } else if (fault != kNoFile) {
      found.unread.push_back({rank, false, std::move(fault)});
    } else if (++missing <= kMostMissing) {
      found.unread.push_back({rank, true, kNoFile});
    }
  }
  return found;
}

std::vector<RankStatus> read_rank_statuses(const std::filesystem::path& run) {
  return read_rank_files(run).ranks;
}

bool is_alive(int pid) {
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return false;
  // "pid (name) state ...": the name may hold anything, so look behind its last parenthesis.
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(in, stat);
  const std::size_t close = stat.rfind(')');
  return close == std::string::npos || close + 2 >= stat.size() ||
         (stat[close + 2] != 'Z' && stat[close + 2] != 'X');
}

/// Ranks may look at any moment: the file appears with its words.
void write_request(const std::filesystem::path& path, std::string_view word) {
  const std::string file = path.string(), fresh = file + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && ::write(fd, word.data(), word.size()) == static_cast<ssize_t>(word.size());
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(fresh.c_str(), file.c_str()) != 0) {
    throw Error(ExitCode::io, file + ": " + std::strerror(errno));
  }
}

void request_stop(const std::filesystem::path& run, StopReason reason) {
  write_request(run / "stop", reason == StopReason::requeue ? kRequeue : std::string_view());
}

void request_pause(const std::filesystem::path& run, std::string_view who) {
  write_request(run / "pause", who);
}

bool pause_requested(const std::filesystem::path& run) {
  return ::access((run / "pause").c_str(), F_OK) == 0;
}

std::string pause_requester(const std::filesystem::path& run) {
  constexpr std::size_t kMost = 200;
  std::ifstream in(run / "pause");
  std::string who;
  std::getline(in, who);
  return who.substr(0, kMost);
}

void forget_stop(const std::filesystem::path& run) { ::unlink((run / "stop").c_str()); }

bool end_pause(const std::filesystem::path& run) { return ::unlink((run / "pause").c_str()) == 0; }

StopReason requested_stop(const std::filesystem::path& run) {
  const int fd = ::open((run / "stop").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return StopReason::none;
  std::array<char, kRequeue.size()> text{};
  const ssize_t size = ::read(fd, text.data(), text.size());
  ::close(fd);
  const bool requeue = size == static_cast<ssize_t>(text.size()) &&
                       std::string_view(text.data(), text.size()) == kRequeue;
  return requeue ? StopReason::requeue : StopReason::stop;
}

}  // namespace tessera
