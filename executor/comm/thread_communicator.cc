#include "executor/comm/thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/split.h"
#include "executor/comm/reduce.h"

namespace tessera {
namespace {

class Group;

/// Pointers that a rank shows to the others during one operation.
struct Posted {
  std::string_view op;
  std::size_t count = 0;
  DType type = DType::uint8;
  ReduceOp reduce = ReduceOp::sum;
  int root = 0;
  const void* send = nullptr;
  void* receive = nullptr;
  std::span<const SendBlock> sends;
  std::span<const ReceiveBlock> receives;
  std::shared_ptr<Group> group;  // made by the first of `members` in a split
};

bool same_call(const Posted& a, const Posted& b) {
  return a.op == b.op && a.count == b.count && a.type == b.type && a.reduce == b.reduce &&
         a.root == b.root;
}

/// State of one group: a barrier that can be broken, and a slot per member.
class Group {
 public:
  explicit Group(std::vector<int> global_ranks)
      : global_ranks_(std::move(global_ranks)), slots_(global_ranks_.size()) {}

  int size() const { return static_cast<int>(global_ranks_.size()); }
  int global_rank(int member) const { return global_ranks_[static_cast<std::size_t>(member)]; }
  Posted& slot(int member) { return slots_[static_cast<std::size_t>(member)]; }

  /// Returns when every member has entered, throws when one is lost. Slots and the buffers they
  /// name may be read from here until leave().
  void enter() {
    std::unique_lock lock(mutex_);
    throw_if_lost();
    const std::uint64_t mine = generation_;
    if (++arrived_ == size()) {
      arrived_ = 0;
      inside_ = size();
      ++generation_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return generation_ != mine || lost_.has_value(); });
    if (generation_ == mine) throw_if_lost();
  }

  /// Returns when every member has left; members inside never block, so this never throws.
  void leave() {
    std::unique_lock lock(mutex_);
    if (--inside_ == 0) return changed_.notify_all();
    changed_.wait(lock, [&, mine = generation_] { return inside_ == 0 || generation_ != mine; });
  }

  void lose(int member) {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = global_rank(member);
    changed_.notify_all();
  }

 private:
  void throw_if_lost() const {
    if (lost_) throw PeerLost(*lost_, "rank " + std::to_string(*lost_) + " left the group");
  }

  std::vector<int> global_ranks_;
  std::vector<Posted> slots_;  // written by the owner before, read by all after a barrier
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t generation_ = 0;
  int arrived_ = 0, inside_ = 0;
  std::optional<int> lost_;
};

const std::byte* at(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}
std::byte* at(void* data, std::size_t bytes) { return static_cast<std::byte*>(data) + bytes; }

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ~ThreadCommunicator() override { group_->lose(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    post({.op = "all_reduce", .count = count, .type = type, .reduce = op, .receive = data});
    // Each member reduces its slice and writes it into everybody's buffer.
    const Interval slice = tessera::split(static_cast<std::int64_t>(count), size(), rank_);
    const std::size_t offset = static_cast<std::size_t>(slice.lo * size_of(type));
    const std::size_t elements = static_cast<std::size_t>(slice.size());
    std::vector<const void*> inputs;
    for (int r = 0; r < size(); ++r) inputs.push_back(at(group_->slot(r).receive, offset));
    reduce_blocks(at(data, offset), inputs, elements, type, op);
    for (int r = 0; r < size(); ++r) {
      copy_bytes(at(group_->slot(r).receive, offset), at(data, offset), bytes_of(elements, type));
    }
    group_->leave();
  }

  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    post({.op = "all_gather", .count = count, .type = type, .send = send});
    const std::size_t bytes = bytes_of(count, type);
    for (int r = 0; r < size(); ++r)
      copy_bytes(at(receive, index(r) * bytes), group_->slot(r).send, bytes);
    group_->leave();
  }

  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    post({.op = "reduce_scatter", .count = count, .type = type, .reduce = op, .send = send});
    std::vector<const void*> inputs;
    for (int r = 0; r < size(); ++r) {
      inputs.push_back(at(group_->slot(r).send, index(rank_) * bytes_of(count, type)));
    }
    reduce_blocks(receive, inputs, count, type, op);
    group_->leave();
  }

  void broadcast(void* data, std::size_t count, DType type, int root) override {
    post({.op = "broadcast", .count = count, .type = type, .root = root, .send = data});
    copy_bytes(data, group_->slot(root).send, bytes_of(count, type));
    group_->leave();
  }

  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    post({.op = "all_to_all", .count = count, .type = type, .send = send});
    const std::size_t bytes = bytes_of(count, type);
    for (int r = 0; r < size(); ++r) {
      copy_bytes(at(receive, index(r) * bytes), at(group_->slot(r).send, index(rank_) * bytes),
                 bytes);
    }
    group_->leave();
  }

  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    post({.op = "exchange", .sends = sends, .receives = receives});
    std::string difference;
    for (int peer = 0; peer < size() && difference.empty(); ++peer) {
      difference = receive_from(peer, receives);
    }
    group_->leave();
    if (!difference.empty()) throw Error(ExitCode::internal, difference);
  }

  void barrier() override {
    post({.op = "barrier"});
    group_->leave();
  }

  void abort() override { group_->lose(rank_); }

  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    const auto mine = std::find(members.begin(), members.end(), rank_);
    const bool listed = mine != members.end();
    Posted posted{.op = "split"};
    if (listed && members[0] == rank_) {
      std::vector<int> ranks;
      for (const int member : members) ranks.push_back(group_->global_rank(member));
      posted.group = std::make_shared<Group>(std::move(ranks));
    }
    post(std::move(posted));
    std::unique_ptr<Communicator> made;
    if (listed) {
      made = std::make_unique<ThreadCommunicator>(group_->slot(members[0]).group,
                                                  static_cast<int>(mine - members.begin()));
    }
    group_->leave();
    return made;
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static std::size_t bytes_of(std::size_t count, DType type) {
    return count * static_cast<std::size_t>(size_of(type));
  }

  /// Shows the call to the others, waits for theirs and compares. The caller leaves the group.
  void post(Posted posted) {
    group_->slot(rank_) = std::move(posted);
    group_->enter();
    const Posted& mine = group_->slot(rank_);
    for (int r = 0; r < size(); ++r) {
      if (same_call(mine, group_->slot(r))) continue;
      const std::string difference = difference_from(
          std::string(mine.op) + " of " + std::to_string(mine.count) + " elements", r,
          std::string(group_->slot(r).op) + " of " + std::to_string(group_->slot(r).count));
      group_->leave();
      throw Error(ExitCode::internal, difference);
    }
  }

  /// The k-th message from `peer` is the k-th that it sends here. Returns what does not match.
  std::string receive_from(int peer, std::span<const ReceiveBlock> receives) {
    std::vector<const SendBlock*> sent;
    for (const SendBlock& send : group_->slot(peer).sends) {
      if (send.peer == rank_) sent.push_back(&send);
    }
    std::size_t next = 0;
    for (const ReceiveBlock& receive : receives) {
      if (receive.peer != peer) continue;
      if (next == sent.size() || sent[next]->bytes != receive.bytes) {
        return difference_from(
            "to receive message " + std::to_string(next) + " of " + std::to_string(receive.bytes) +
                " bytes",
            peer,
            next == sent.size() ? "none" : std::to_string(sent[next]->bytes) + " bytes to send");
      }
      copy_bytes(receive.data, sent[next++]->data, receive.bytes);
    }
    if (next == sent.size()) return {};
    return difference_from("to receive " + std::to_string(next) + " messages", peer,
                           std::to_string(sent.size()) + " to send");
  }

  std::string difference_from(const std::string& mine, int peer, const std::string& theirs) const {
    return "rank " + std::to_string(group_->global_rank(rank_)) + " has " + mine + ", rank " +
           std::to_string(group_->global_rank(peer)) + " has " + theirs;
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

bool is_peer_lost(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PeerLost&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator& world)>& fn) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)] = r;
  const auto group = std::make_shared<Group>(std::move(all));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadCommunicator world(group, r);
      try {
        fn(world);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (error && (!first || (is_peer_lost(first) && !is_peer_lost(error)))) first = error;
  }
  if (first) std::rethrow_exception(first);
}

std::unique_ptr<Communicator> make_solo_world() {
  return std::make_unique<ThreadCommunicator>(std::make_shared<Group>(std::vector<int>{0}), 0);
}

}  // namespace tessera
