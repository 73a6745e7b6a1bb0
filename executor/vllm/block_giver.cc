#include "executor/vllm/block_giver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

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
    : descriptor_(block.descriptor()), bytes_(block.bytes()), wake_(::eventfd(0, EFD_CLOEXEC)) {
  if (wake_ < 0) throw Error(ExitCode::io, std::string("eventfd: ") + std::strerror(errno));
  thread_ = std::thread([this] { answer(); });
}

BlockGiver::~BlockGiver() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(wake_);
}

void BlockGiver::answer() const {
  for (;;) {
    std::array<pollfd, 2> awaited{pollfd{socket_.descriptor(), POLLIN, 0},
                                  pollfd{wake_, POLLIN, 0}};
    if (::poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) return;
    if (awaited[1].revents != 0) return;
    if (awaited[0].revents == 0) continue;
    const int connection = socket_.accept();
    if (connection < 0) continue;
    send_descriptor(connection, bytes_, descriptor_);
    ::close(connection);
  }
}

}  // namespace tessera
