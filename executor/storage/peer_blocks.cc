#include "executor/storage/peer_blocks.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr int kPatienceSeconds = 120;

[[noreturn]] void fail(const char* what) {
  throw Error(ExitCode::io, std::string(what) + ": " + std::strerror(errno));
}

/// Ranks that can reach one another by abstract sockets: one boot, one network namespace.
std::uint64_t host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat net {};
  if (stat("/proc/self/ns/net", &net) == 0) boot += ":" + std::to_string(net.st_ino);
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : boot) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

/// The card by which every rank tells the others about itself.
struct Card {
  std::uint64_t host = 0;
  std::int64_t bytes = -1;  // of its block; -1 = it brings none
  std::array<char, 16> socket{};
  std::uint64_t word = 0;  // that letters to it carry
};

std::uint64_t random_word() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

/// The sender of a letter, and the word by which the receiver knows its peers.
struct Sender {
  std::uint64_t word = 0;
  int rank = -1;
};

/// A datagram socket with a name that the kernel chose.
class Mailbox {
 public:
  explicit Mailbox(std::array<char, 16>& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (socket_.get() < 0) fail("Unix socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    if (bind(socket_.get(), any, sizeof(sa_family_t)) != 0) fail("Unix socket");
    socklen_t length = sizeof address;
    if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      fail("Unix socket");
    }
    const std::size_t characters = length - offsetof(sockaddr_un, sun_path);
    TESSERA_CHECK(characters < name.size());
    name.back() = static_cast<char>(characters);
    std::memcpy(name.data(), address.sun_path, characters);
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }

  void send(const std::array<char, 16>& name, Sender from, int descriptor) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t characters = static_cast<unsigned char>(name.back());
    std::memcpy(address.sun_path, name.data(), characters);
    Letter letter(from);
    letter.header.msg_name = &address;
    letter.header.msg_namelen =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + characters);
    cmsghdr* control = CMSG_FIRSTHDR(&letter.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
    if (sendmsg(socket_.get(), &letter.header, 0) < 0) fail("passing a descriptor");
  }

  /// Rank that sent it, and the descriptor. Letters of other processes, which do not know `word`,
  /// are thrown away.
  std::pair<int, Descriptor> receive(std::uint64_t word) const {
    for (;;) {
      Letter letter({});
      const ssize_t length = recvmsg(socket_.get(), &letter.header, MSG_CMSG_CLOEXEC);
      if (length < 0) throw PeerLost(-1, "a rank of this host did not pass its memory");
      const cmsghdr* control = CMSG_FIRSTHDR(&letter.header);
      if (control == nullptr || control->cmsg_type != SCM_RIGHTS) continue;
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
      Descriptor received(descriptor);
      if (length != sizeof(Sender) || letter.from.word != word) continue;
      return {letter.from.rank, std::move(received)};
    }
  }

 private:
  struct Letter {
    explicit Letter(Sender sender) : from(sender) {
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = sizeof control;
    }
    Sender from;
    iovec part{&from, sizeof from};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
  };

  Descriptor socket_;
};

}  // namespace

PeerBlocks::PeerBlocks(Communicator& host, const SharedBlock* mine)
    : data_(static_cast<std::size_t>(host.size())),
      same_host_(static_cast<std::size_t>(host.size())) {
  Card card{.host = host_identity(),
            .bytes = mine != nullptr ? mine->bytes() : -1,
            .word = random_word()};
  const Mailbox mailbox(card.socket);
  std::vector<Card> cards(data_.size());
  host.all_gather(&card, cards.data(), sizeof(Card), DType::uint8);
  const int size = host.size(), rank = host.rank();
  int awaited = 0;
  for (int r = 0; r < size; ++r) {
    const auto peer = static_cast<std::size_t>(r);
    same_host_[peer] = cards[peer].host == card.host;
    if (r != rank && same_host_[peer] && cards[peer].bytes >= 0) ++awaited;
  }
  for (int step = 1; step < size; ++step) {
    const auto to = static_cast<std::size_t>((rank + step) % size);
    if (mine != nullptr && same_host_[to]) {
      mailbox.send(cards[to].socket, {.word = cards[to].word, .rank = rank}, mine->descriptor());
    }
  }
  if (mine != nullptr)
    data_[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(mine->data());
  // A rank without a block of its own, of an unknown kind, reads nobody's.
  for (int i = 0; i < awaited; ++i) {
    const auto [peer, descriptor] = mailbox.receive(card.word);
    if (mine == nullptr) continue;
    const auto index = static_cast<std::size_t>(peer);
    mappings_.push_back(mine->map_peer(descriptor.get(), cards[index].bytes));
    data_[index] = static_cast<std::byte*>(mappings_.back()->data());
  }
  host.barrier();
}

bool PeerBlocks::all_on_one_host() const {
  return std::all_of(same_host_.begin(), same_host_.end(), [](bool same) { return same; });
}

}  // namespace tessera
