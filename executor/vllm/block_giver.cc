#include "executor/vllm/block_giver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// Nobody can guess it, so that a name tells who may ask.
std::string random_name() {
  std::random_device device;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "tessera-%08x%08x%08x", device(), device(), device());
  return text.data();
}

bool same_user(int connection) {
  ucred who{};
  socklen_t length = sizeof who;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
         who.uid == ::geteuid();
}

void send_descriptor(int connection, std::int64_t bytes, int descriptor) {
  iovec part{&bytes, sizeof bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  ::sendmsg(connection, &header, MSG_NOSIGNAL);  // who does not listen has lost it
}

}  // namespace

BlockGiver::BlockGiver(const SharedBlock& block)
    : descriptor_(block.descriptor()), bytes_(block.bytes()), name_(random_name()) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], name_.data(), name_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  if (socket_ < 0 || wake_ < 0 ||
      ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(socket_, 64) != 0) {
    throw Error(ExitCode::io, std::string("Unix socket: ") + std::strerror(errno));
  }
  thread_ = std::thread([this] { answer(); });
}

BlockGiver::~BlockGiver() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(wake_);
}

void BlockGiver::answer() const {
  for (;;) {
    std::array<pollfd, 2> awaited{pollfd{socket_, POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
    if (::poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) return;
    if (awaited[1].revents != 0) return;
    if (awaited[0].revents == 0) continue;
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (same_user(connection)) send_descriptor(connection, bytes_, descriptor_);
    ::close(connection);
  }
}

}  // namespace tessera
