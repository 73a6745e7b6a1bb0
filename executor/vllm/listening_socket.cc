#include "executor/vllm/listening_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

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

}  // namespace

ListeningSocket::ListeningSocket() : name_(random_name()) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], name_.data(), name_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      ::listen(socket_, 64) == 0) {
    return;
  }
  const int error = errno;
  if (socket_ >= 0) ::close(socket_);
  throw Error(ExitCode::io, std::string("Unix socket: ") + std::strerror(error));
}

ListeningSocket::~ListeningSocket() { ::close(socket_); }

int ListeningSocket::accept() const {
  const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0 || same_user(connection)) return connection;
  ::close(connection);
  return -1;
}

}  // namespace tessera
