#include "simulator/flight_recorder/flight_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "simulator/flight_recorder/flight_layout.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"ended", "waits", "enqueued", "captured"};
constexpr int kTypes = 6, kMostRanks = 1 << 24;

template <std::size_t size>
std::string text_of(const std::array<char, size>& text) {
  std::string found(text.data(), ::strnlen(text.data(), size));
  for (char& c : found) {
    if (c < ' ' || c > '~') c = '?';
  }
  return found;
}

/// The file's bytes, twice: what a rank writes meanwhile differs. Reading instead of mapping, as a
/// file that somebody cuts would end this process by a signal.
struct TwoLooks {
  FlightLayout first, second;
};

bool read_whole(int fd, FlightLayout& into) {
  return ::pread(fd, &into, sizeof into, 0) == ssize_t{sizeof into};
}

std::unique_ptr<TwoLooks> look_at(const std::filesystem::path& file, std::string& reason) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    reason = std::strerror(errno);
    return nullptr;
  }
  auto looks = std::make_unique<TwoLooks>();
  struct stat found {};
  const bool regular = ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  const bool whole = regular && found.st_size == off_t{sizeof(FlightLayout)} &&
                     read_whole(fd, looks->first) && read_whole(fd, looks->second);
  ::close(fd);
  if (!whole) {
    reason = std::to_string(found.st_size) + " bytes, where a record has " +
             std::to_string(sizeof(FlightLayout));
    return nullptr;
  }
  if (looks->second.magic != FlightLayout::kMagic) {
    reason = "it does not begin as a record of collectives does";
    return nullptr;
  }
  return looks;
}

bool is_whole(const FlightLayout::Entry& entry) {
  return entry.number > 0 && entry.check == entry.number;
}

CollectiveState state_of(const FlightLayout::Entry& entry, const FlightLayout::Group& group) {
  const bool exchange = entry.kind == static_cast<std::uint8_t>(CollectiveKind::exchange);
  const std::int64_t ended =
      group.ended[exchange ? FlightLayout::kExchanges : FlightLayout::kCollectives];
  if ((entry.flags & FlightLayout::kCaptured) != 0) return CollectiveState::captured;
  const bool enqueued = (entry.flags & FlightLayout::kEnqueued) != 0;
  if (entry.ended_ns > 0 || (enqueued && entry.sequence <= ended)) return CollectiveState::ended;
  return enqueued ? CollectiveState::enqueued : CollectiveState::waits;
}

std::vector<int> members_of(std::uint64_t bits, int size) {
  std::vector<int> members;
  for (int member = 0; member < std::min(63, size); ++member) {
    if ((bits & peer_bit(member)) != 0) members.push_back(member);
  }
  return members;
}

void add_groups(const FlightLayout& layout, FlightRecord& record) {
  const int count = std::clamp(layout.groups, 0, FlightLayout::kGroups);
  if (count != layout.groups) ++record.damaged;
  for (int i = 0; i < count; ++i) {
    const FlightLayout::Group& group = layout.group_table[static_cast<std::size_t>(i)];
    const auto& [collectives, exchanges] = group.begun;
    const auto& [ended, exchanged] = group.ended;
    const bool sound = group.size > 0 && group.size < kMostRanks && group.index >= 0 &&
                       group.index < group.size && 0 <= ended && ended <= collectives &&
                       0 <= exchanged && exchanged <= exchanges;
    if (!sound) ++record.damaged;
    record.groups.push_back(
        {.id = sound ? group.id : 0,  // entries count groups: it keeps its place
         .name = text_of(group.name),
         .size = sound ? group.size : 0,
         .index = sound ? group.index : 0,
         .begun = {collectives, exchanges},
         .ended = {ended, exchanged}});
  }
}

std::optional<LastCollective> collective_of(const FlightLayout& layout,
                                            const FlightLayout::Entry& entry,
                                            const std::vector<CollectiveGroup>& groups) {
  const bool sound = entry.group < groups.size() && groups[entry.group].size > 0 &&
                     entry.kind < kCollectiveKinds && entry.type < kTypes &&
                     entry.phase < FlightLayout::kPhases && entry.sequence > 0 &&
                     entry.bytes >= 0 && entry.begun_ns > 0 && entry.ended_ns >= 0;
  if (!sound) return std::nullopt;
  return LastCollective{.group = entry.group,
                        .sequence = entry.sequence,
                        .kind = static_cast<CollectiveKind>(entry.kind),
                        .state = state_of(entry, layout.group_table[entry.group]),
                        .type = static_cast<DType>(entry.type),
                        .bytes = entry.bytes,
                        .root = entry.root,
                        .peers = members_of(entry.peers, groups[entry.group].size),
                        .phase = text_of(layout.phase_names[entry.phase]),
                        .step = entry.step,
                        .begun_ns = entry.begun_ns,
                        .ended_ns = entry.ended_ns};
}

}  // namespace

std::string_view name_of(CollectiveState state) { return kStates[static_cast<std::size_t>(state)]; }

std::optional<FlightRecord> read_flight_record(const std::filesystem::path& run, int rank,
                                               std::string& reason) {
  const std::filesystem::path file = flight_file(run, rank);
  const std::unique_ptr<TwoLooks> looks = look_at(file, reason);
  if (looks == nullptr) return std::nullopt;
  const FlightLayout& layout = looks->second;
  FlightRecord record{.rank = rank, .pid = layout.pid, .groups = {}, .last = {}};
  if (layout.rank != rank) ++record.damaged;
  add_groups(layout, record);
  std::vector<const FlightLayout::Entry*> entries;
  for (std::size_t i = 0; i < layout.ring.size(); ++i) {
    const FlightLayout::Entry& entry = layout.ring[i];
    const bool still = is_whole(entry) && entry.number == looks->first.ring[i].number &&
                       is_whole(looks->first.ring[i]);
    if (still) entries.push_back(&entry);
  }
  std::ranges::sort(entries, {}, &FlightLayout::Entry::number);
  for (const FlightLayout::Entry* entry : entries) {
    auto collective = collective_of(layout, *entry, record.groups);
    collective ? record.last.push_back(*std::move(collective)) : void(++record.damaged);
  }
  return record;
}

}  // namespace tessera
