#include "executor/vllm/weight_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/vllm/listening_socket.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

/// A connection that ends with the value.
class Stream {
 public:
  Stream() = default;
  explicit Stream(int descriptor) : descriptor_(descriptor) {}
  Stream(Stream&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Stream() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int get() const { return descriptor_; }
  /// Waits that are under way on it end.
  void end() const { ::shutdown(descriptor_, SHUT_RDWR); }

 private:
  int descriptor_ = -1;
};

void limit_waits(int connection, double seconds) {
  const auto whole = static_cast<time_t>(std::ceil(seconds));
  const timeval limit{.tv_sec = std::max<time_t>(1, whole), .tv_usec = 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void write_all(int connection, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::send(connection, at, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw Error(
          ExitCode::missing,
          std::string("weights could not be sent to a worker of vLLM: ") + std::strerror(errno));
    }
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

class SocketLink final : public WeightLink {
 public:
  SocketLink(int workers, double timeout_s)
      : streams_(static_cast<std::size_t>(workers)), timeout_s_(timeout_s) {}
  ~SocketLink() override {
    for (const Stream& stream : streams_) stream.end();
  }

  std::string name() const override { return socket_.name(); }

  void join() override {
    const auto until = Clock::now() + std::chrono::duration<double>(timeout_s_);
    for (std::size_t met = 0; met < streams_.size();) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd awaited{socket_.descriptor(), POLLIN, 0};
      if (left <= 0 || ::poll(&awaited, 1, static_cast<int>(left)) == 0) {
        throw Error(ExitCode::missing, std::to_string(streams_.size() - met) + " of " +
                                           std::to_string(streams_.size()) +
                                           " workers of vLLM did not come for their weights");
      }
      if (Stream stream(socket_.accept()); stream.get() >= 0 && keep(std::move(stream))) ++met;
    }
  }

  void send(std::span<const WeightRound> rounds) override {
    sent_.clear();
    for (std::size_t worker = 0; worker < streams_.size(); ++worker) {
      std::vector<SendBlock> blocks;
      for (const WeightRound& round : rounds) {
        const auto first = static_cast<std::ptrdiff_t>(blocks.size());
        for (const SendBlock& block : round) {
          if (block.peer == static_cast<int>(worker)) blocks.push_back(block);
        }
        std::stable_sort(blocks.begin() + first, blocks.end(),
                         [](const SendBlock& a, const SendBlock& b) { return a.bytes > b.bytes; });
      }
      // Workers take what ranks send in orders of their own: none waits for another's.
      sent_.push_back(
          std::async(std::launch::async, [blocks = std::move(blocks), to = streams_[worker].get()] {
            for (const SendBlock& block : blocks) write_all(to, block.data, block.bytes);
          }));
    }
  }

  void finish() override {
    for (std::future<void>& each : sent_) each.get();
    sent_.clear();
  }

 private:
  /// A worker's, which tells its index first.
  bool keep(Stream stream) {
    limit_waits(stream.get(), timeout_s_);
    std::int32_t worker = -1;
    if (::recv(stream.get(), &worker, sizeof worker, MSG_WAITALL) != sizeof worker) return false;
    if (worker < 0 || worker >= static_cast<int>(streams_.size())) return false;
    Stream& place = streams_[static_cast<std::size_t>(worker)];
    if (place.get() >= 0) return false;
    place = std::move(stream);
    return true;
  }

  ListeningSocket socket_;
  std::vector<Stream> streams_;  // by worker
  double timeout_s_;
  std::vector<std::future<void>> sent_;  // last: they use the streams
};

class WorldLink final : public WeightLink {
 public:
  WorldLink(std::function<std::unique_ptr<Communicator>()> make_world, int senders)
      : make_world_(std::move(make_world)), senders_(senders) {}

  std::string name() const override { return {}; }
  void join() override { world_ = make_world_(); }
  void send(std::span<const WeightRound> rounds) override {
    for (WeightRound round : std::vector<WeightRound>(rounds.begin(), rounds.end())) {
      for (SendBlock& block : round) block.peer += senders_;
      world_->exchange(round, {});
    }
  }
  /// Later work of this rank is behind the messages on the world's stream.
  void finish() override {}

 private:
  std::function<std::unique_ptr<Communicator>()> make_world_;
  int senders_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace

std::unique_ptr<WeightLink> make_socket_link(int workers, double timeout_s) {
  return std::make_unique<SocketLink>(workers, timeout_s);
}

std::unique_ptr<WeightLink> make_world_link(
    std::function<std::unique_ptr<Communicator>()> make_world, int senders) {
  return std::make_unique<WorldLink>(std::move(make_world), senders);
}

}  // namespace tessera
