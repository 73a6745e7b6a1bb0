#include "simulator/flight_recorder/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <string>

#include "cost_models/documents/problem.h"
#include "simulator/flight_recorder/flight_layout.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kCollectiveKinds> kKinds = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "exchange", "barrier"};

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// The longest prefix that leaves a zero behind it.
template <std::size_t size>
void put_text(std::array<char, size>& into, std::string_view text) {
  into.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), size - 1), into.begin());
}

/// FNV-1a.
std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 14695981039346656037U;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return digest;
}

template <class T>
std::atomic_ref<T> shared(T& value) {
  return std::atomic_ref<T>(value);
}

FlightLayout::Entry& entry_of(FlightLayout& layout, std::int64_t number) {
  return layout.ring[static_cast<std::size_t>((number - 1) % FlightLayout::kEntries)];
}

FlightLayout::Group& group_of(FlightLayout& layout, int group) {
  return layout.group_table[static_cast<std::size_t>(group)];
}

FlightLayout::Counter counter_of(CollectiveKind kind) {
  return kind == CollectiveKind::exchange ? FlightLayout::kExchanges : FlightLayout::kCollectives;
}

void raise_to(std::int64_t& counter, std::int64_t value) {
  if (shared(counter).load(std::memory_order_relaxed) < value) {
    shared(counter).store(value, std::memory_order_relaxed);
  }
}

}  // namespace

std::string_view name_of(CollectiveKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::filesystem::path flight_file(const std::filesystem::path& run, int rank) {
  return run / "ranks" / (std::to_string(rank) + ".collectives");
}

FlightRecorder::FlightRecorder() {
  void* const memory = ::mmap(nullptr, sizeof(FlightLayout), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  layout_ = new (memory) FlightLayout{};
  layout_->magic = FlightLayout::kMagic;
  layout_->rank = -1;
  layout_->pid = static_cast<std::int32_t>(::getpid());
  enter("load", 0);
}

FlightRecorder::~FlightRecorder() { ::munmap(layout_, sizeof(FlightLayout)); }

void FlightRecorder::keep_in(const std::filesystem::path& run, int rank) {
  const std::filesystem::path file = flight_file(run, rank);
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  layout_->rank = rank;
  // Written whole: a disk that is full says so here, and not by a signal when a page is touched.
  const std::string fresh = file.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool made = fd >= 0 &&
                    ::write(fd, layout_, sizeof(FlightLayout)) == ssize_t{sizeof(FlightLayout)} &&
                    ::rename(fresh.c_str(), file.c_str()) == 0;
  // In place of the memory: whoever notes operations goes on where it was.
  void* const mapped = made ? ::mmap(layout_, sizeof(FlightLayout), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_FIXED, fd, 0)
                            : MAP_FAILED;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (mapped != MAP_FAILED) return;
  ::unlink(fresh.c_str());
  throw Error(ExitCode::io, file.string() + ": " + std::strerror(error));
}

void FlightRecorder::enter(std::string_view phase, std::int64_t step) {
  std::array<char, 24> name;
  put_text(name, phase);
  std::int32_t place = 0;
  while (place < layout_->phases && layout_->phase_names[static_cast<std::size_t>(place)] != name) {
    ++place;
  }
  if (place == FlightLayout::kPhases) place = 0;  // more than a run has
  if (place == layout_->phases) {
    layout_->phase_names[static_cast<std::size_t>(place)] = name;
    shared(layout_->phases).store(place + 1, std::memory_order_release);
  }
  shared(layout_->phase).store(place, std::memory_order_relaxed);
  shared(layout_->step).store(step, std::memory_order_relaxed);
}

int FlightRecorder::add_group(std::string_view path, std::string_view name, int size, int index) {
  const std::int32_t place = shared(layout_->groups).load();
  if (place >= FlightLayout::kGroups) return kNoGroup;
  FlightLayout::Group& group = group_of(*layout_, place);
  group = {.id = digest_of(path), .size = size, .index = index};
  put_text(group.name, name);
  shared(layout_->groups).store(place + 1, std::memory_order_release);
  return place;
}

void FlightRecorder::name_group(int group, std::string_view name) {
  if (group != kNoGroup) put_text(group_of(*layout_, group).name, name);
}

std::int64_t FlightRecorder::begin(int group, const CollectiveCall& call) {
  if (group == kNoGroup) return 0;
  const std::int64_t sequence =
      1 + shared(group_of(*layout_, group).begun[counter_of(call.kind)]).fetch_add(1);
  const std::int64_t number = 1 + shared(layout_->begun).fetch_add(1);
  FlightLayout::Entry& entry = entry_of(*layout_, number);
  shared(entry.check).store(0, std::memory_order_relaxed);
  shared(entry.number).store(number, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.sequence = sequence;
  entry.begun_ns = now_ns();
  entry.ended_ns = 0;
  entry.bytes = call.bytes;
  entry.peers = call.peers;
  entry.step = static_cast<std::int32_t>(shared(layout_->step).load(std::memory_order_relaxed));
  entry.root = call.root;
  entry.group = static_cast<std::uint16_t>(group);
  entry.kind = static_cast<std::uint8_t>(call.kind);
  entry.type = static_cast<std::uint8_t>(call.type);
  entry.phase = static_cast<std::uint8_t>(shared(layout_->phase).load(std::memory_order_relaxed));
  entry.flags = call.enqueued ? FlightLayout::kEnqueued : 0;
  shared(entry.check).store(number, std::memory_order_release);
  return number;
}

void FlightRecorder::end(std::int64_t number) {
  if (number == 0) return;
  FlightLayout::Entry& entry = entry_of(*layout_, number);
  if (shared(entry.number).load() != number) return;  // 64 others have begun since
  entry.ended_ns = now_ns();
  const auto counter = counter_of(static_cast<CollectiveKind>(entry.kind));
  raise_to(group_of(*layout_, entry.group).ended[counter], entry.sequence);
}

void FlightRecorder::captured(std::int64_t number) {
  if (number == 0) return;
  FlightLayout::Entry& entry = entry_of(*layout_, number);
  if (shared(entry.number).load() == number) entry.flags |= FlightLayout::kCaptured;
}

FlightRecorder::Reached FlightRecorder::begun(int group) const {
  if (group == kNoGroup) return {};
  FlightLayout::Group& found = group_of(*layout_, group);
  return {.collectives = shared(found.begun[FlightLayout::kCollectives]).load(),
          .exchanges = shared(found.begun[FlightLayout::kExchanges]).load()};
}

void FlightRecorder::end_until(int group, const Reached& reached) {
  if (group == kNoGroup) return;
  FlightLayout::Group& found = group_of(*layout_, group);
  raise_to(found.ended[FlightLayout::kCollectives], reached.collectives);
  raise_to(found.ended[FlightLayout::kExchanges], reached.exchanges);
}

}  // namespace tessera
