// MPI's C API behind Communicator: point-to-point messages only, reductions of our own.
//
// MPI has no bf16, its counts are int, and its reductions promise no order: here every reduction
// folds in rank order with the same code as on threads, so all backends on host memory give the
// same bits. Waiting polls, so that an abort or a silence is noticed, and yields the core.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/spec/split.h"
#include "executor/comm/mpi_world.h"
#include "executor/comm/reduce.h"
#include "executor/comm/stopwatch.h"
#include "executor/comm/wait_mark.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDataTag = 1, kAbortTag = 2;
constexpr std::size_t kDirectBytes = 8192;  // up to here every member sends all to all
constexpr std::size_t kSliceBytes = std::size_t{512} << 10;  // per peer and segment of a reduction

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
std::size_t bytes_of(std::size_t count, DType type) {
  return count * static_cast<std::size_t>(size_of(type));
}
const std::byte* at(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}
std::byte* at(void* data, std::size_t bytes) { return static_cast<std::byte*>(data) + bytes; }
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw PeerLost(-1, "MPI: " + std::string(text, index(length)));
}

/// The process's MPI session; the last communicator ends it.
class Session {
 public:
  explicit Session(const MpiOptions& chosen) : options(chosen) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  /// Finalising waits for every rank: after a failure the process ends without, and the launcher
  /// takes that for the failure it is.
  ~Session() {
    if (!failed && std::uncaught_exceptions() == 0) MPI_Finalize();
  }
  Session(const Session&) = delete;

  const MpiOptions options;
  std::atomic<bool> failed = false;
};

class MpiCommunicator final : public Communicator {
 public:
  /// Takes `comm`; `global_ranks` are the members' ranks in the world.
  MpiCommunicator(std::shared_ptr<Session> session, MPI_Comm comm, std::vector<int> global_ranks)
      : session_(std::move(session)), comm_(comm), global_ranks_(std::move(global_ranks)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiCommunicator() override {
    if (!aborted_ && !session_->failed && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    if (bytes_of(count, type) <= kDirectBytes) return reduce_directly(data, count, type, op);
    const std::size_t segment = kSliceBytes / bytes_of(1, type) * index(size_);
    for (std::size_t begin = 0; begin < count; begin += segment) {
      reduce_segment(at(data, bytes_of(begin, type)), std::min(segment, count - begin), type, op);
    }
  }

  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = bytes_of(count, type);
    for (int step = 1; step < size_; ++step) {
      post_receive(at(receive, index(before(step)) * bytes), bytes, before(step));
      post_send(send, bytes, after(step));
    }
    copy_bytes(at(receive, index(rank_) * bytes), send, bytes);
    finish();
  }

  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    const std::size_t segment = kSliceBytes / bytes_of(1, type);
    std::vector<const void*> inputs(index(size_));
    for (std::size_t begin = 0; begin < count; begin += segment) {
      const std::size_t n = std::min(segment, count - begin);
      const auto block = [&](int r) { return at(send, bytes_of(index(r) * count + begin, type)); };
      gather_inputs(bytes_of(n, type), block, inputs);
      reduce_blocks(at(receive, bytes_of(begin, type)), inputs, n, type, op);
    }
    if (count == 0) finish();
  }

  /// Binomial tree; pieces follow one another down the tree.
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    const std::size_t bytes = bytes_of(count, type);
    const int place = (rank_ - root + size_) % size_;
    int reach = 1;  // children are place + reach' for reach' below the lowest set bit of place
    while (reach < size_ && (place & reach) == 0) reach *= 2;
    for (std::size_t begin = 0; begin < bytes; begin += kBroadcastBytes) {
      const std::size_t n = std::min(kBroadcastBytes, bytes - begin);
      if (place != 0) {
        post_receive(at(data, begin), n, (place - reach + root) % size_);
        finish();
      }
      for (int step = reach / 2; step > 0; step /= 2) {
        if (place + step < size_) post_send(at(data, begin), n, (place + step + root) % size_);
      }
      finish();
    }
    if (bytes == 0) finish();
  }

  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = bytes_of(count, type);
    for (int step = 1; step < size_; ++step) {
      post_receive(at(receive, index(before(step)) * bytes), bytes, before(step));
      post_send(at(send, index(after(step)) * bytes), bytes, after(step));
    }
    copy_bytes(at(receive, index(rank_) * bytes), at(send, index(rank_) * bytes), bytes);
    finish();
  }

  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    for (const ReceiveBlock& block : receives) {
      if (block.peer != rank_) post_receive(block.data, block.bytes, block.peer);
    }
    for (const SendBlock& block : sends) {
      if (block.peer != rank_) post_send(block.data, block.bytes, block.peer);
    }
    copy_to_self(sends, receives);
    finish();
  }

  /// Dissemination: in round k a rank hears from the one 2^k before it.
  void barrier() override {
    for (int step = 1; step < size_; step *= 2) {
      start(MPI_Irecv(nullptr, 0, MPI_BYTE, before(step), kDataTag, comm_, next_request()));
      start(MPI_Isend(nullptr, 0, MPI_BYTE, after(step), kDataTag, comm_, next_request()));
      finish();
    }
    if (size_ == 1) finish();
  }

  void abort() override {
    if (aborted_.exchange(true)) return;
    for (int peer = 0; peer < size_; ++peer) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (peer == rank_) continue;
      MPI_Isend(nullptr, 0, MPI_BYTE, peer, kAbortTag, comm_, &request);
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }

  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    throw_if_aborted();
    const auto mine = std::find(members.begin(), members.end(), rank_);
    const bool listed = mine != members.end();
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, listed ? members[0] : MPI_UNDEFINED,
                         static_cast<int>(mine - members.begin()), &made));
    if (!listed) return nullptr;
    std::vector<int> global_ranks;
    for (const int member : members) global_ranks.push_back(global_ranks_[index(member)]);
    return std::make_unique<MpiCommunicator>(session_, made, std::move(global_ranks));
  }

 private:
  static constexpr std::size_t kBroadcastBytes = std::size_t{4} << 20;

  /// Peers in rotated order, so that not everybody meets at one.
  int before(int step) const { return (rank_ - step + size_) % size_; }
  int after(int step) const { return (rank_ + step) % size_; }

  /// Nothing may be posted after an abort: it would match a peer's next message.
  MPI_Request* next_request() {
    if (aborted_) lose(global_ranks_[index(rank_)], "the group was aborted here");
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }
  void start(int code) {
    if (code != MPI_SUCCESS) fail(code);
  }

  void post_receive(void* data, std::size_t bytes, int peer) {
    for_pieces(bytes, [&](std::size_t begin, int n) {
      start(MPI_Irecv(at(data, begin), n, MPI_BYTE, peer, kDataTag, comm_, next_request()));
    });
  }
  void post_send(const void* data, std::size_t bytes, int peer) {
    for_pieces(bytes, [&](std::size_t begin, int n) {
      start(MPI_Isend(at(data, begin), n, MPI_BYTE, peer, kDataTag, comm_, next_request()));
    });
  }
  template <class Fn>
  void for_pieces(std::size_t bytes, Fn fn) const {
    const std::size_t piece = session_->options.piece_bytes;
    for (std::size_t begin = 0; begin < bytes; begin += piece) {
      fn(begin, static_cast<int>(std::min(piece, bytes - begin)));
    }
  }

  /// The k-th message to oneself is the k-th received from oneself.
  void copy_to_self(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) {
    auto send = sends.begin();
    for (const ReceiveBlock& receive : receives) {
      if (receive.peer != rank_) continue;
      while (send != sends.end() && send->peer != rank_) ++send;
      TESSERA_CHECK(send != sends.end() && send->bytes == receive.bytes);
      copy_bytes(receive.data, (send++)->data, receive.bytes);
    }
  }

  /// Sends block(r) to every rank r and points inputs[r] at what rank r sent here.
  template <class Block>
  void gather_inputs(std::size_t bytes, Block block, std::vector<const void*>& inputs) {
    scratch_.resize(std::max(scratch_.size(), bytes * index(size_)));
    for (int step = 1; step < size_; ++step) {
      std::byte* slot = scratch_.data() + bytes * index(before(step));
      post_receive(slot, bytes, before(step));
      post_send(block(after(step)), bytes, after(step));
      inputs[index(before(step))] = slot;
    }
    inputs[index(rank_)] = block(rank_);
    finish();
  }

  void reduce_directly(void* data, std::size_t count, DType type, ReduceOp op) {
    std::vector<const void*> inputs(index(size_));
    gather_inputs(
        bytes_of(count, type), [&](int) { return at(data, 0); }, inputs);
    reduce_blocks(data, inputs, count, type, op);
  }

  /// Each member reduces its slice and sends it to the others.
  void reduce_segment(std::byte* data, std::size_t count, DType type, ReduceOp op) {
    const auto slice = [&](int r) {
      return tessera::split(static_cast<std::int64_t>(count), size_, r);
    };
    const auto offset = [&](int r) {
      return static_cast<std::size_t>(slice(r).lo * size_of(type));
    };
    const auto bytes = [&](int r) {
      return static_cast<std::size_t>(slice(r).size() * size_of(type));
    };
    scratch_.resize(std::max(scratch_.size(), bytes(rank_) * index(size_)));
    std::vector<const void*> inputs(index(size_));
    for (int step = 1; step < size_; ++step) {
      std::byte* slot = scratch_.data() + bytes(rank_) * index(before(step));
      post_receive(slot, bytes(rank_), before(step));
      post_send(data + offset(after(step)), bytes(after(step)), after(step));
      inputs[index(before(step))] = slot;
    }
    inputs[index(rank_)] = data + offset(rank_);
    finish();
    reduce_blocks(data + offset(rank_), inputs, static_cast<std::size_t>(slice(rank_).size()), type,
                  op);
    for (int step = 1; step < size_; ++step) {
      post_receive(data + offset(before(step)), bytes(before(step)), before(step));
      post_send(data + offset(rank_), bytes(rank_), after(step));
    }
    finish();
  }

  /// Waits for all posted messages: polls for a while, then with ever longer naps, so that ranks
  /// that share cores get on with their work.
  void finish() {
    throw_if_aborted();
    const Stopwatch watch;
    const WaitMark mark(session_->options.waiting);
    for (std::uint64_t turn = 1; !requests_.empty(); ++turn) {
      int done = 0;
      const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                   MPI_STATUSES_IGNORE);
      if (code != MPI_SUCCESS) fail(code);
      if (done != 0) return requests_.clear();
      ::sched_yield();
      if (turn % 32 != 0) continue;
      const double waited = watch.seconds();
      look_for_abort();
      if (waited > session_->options.timeout_s) {
        lose(-1, "no message for " + std::to_string(session_->options.timeout_s) + " s");
      }
      if (waited > 2e-3) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  void throw_if_aborted() {
    if (!aborted_) {
      if (++calls_ % 64 == 0) look_for_abort();
      return;
    }
    lose(global_ranks_[index(rank_)], "the group was aborted here");
  }

  void look_for_abort() {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, comm_, &found, &status);
    if (found != 0) {
      aborted_ = true;
      const int peer = global_ranks_[index(status.MPI_SOURCE)];
      lose(peer, "rank " + std::to_string(peer) + " aborted the group");
    }
    if (aborted_) lose(global_ranks_[index(rank_)], "the group was aborted here");
  }

  [[noreturn]] void fail(int code) {
    session_->failed = true;
    aborted_ = true;
    drop_requests();
    check(code);
    std::terminate();
  }
  [[noreturn]] void lose(int peer, const std::string& what) {
    aborted_ = true;
    drop_requests();
    throw PeerLost(peer, what);
  }

  /// Takes back what nobody will answer, so that the buffers may go. A message that is arriving
  /// gets 0.2 s to end.
  void drop_requests() {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    const Clock::time_point until = Clock::now() + std::chrono::milliseconds(200);
    for (int done = 0; done == 0 && Clock::now() < until; ::sched_yield()) {
      if (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                      MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
        break;
      }
    }
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    requests_.clear();
  }

  std::shared_ptr<Session> session_;
  MPI_Comm comm_;
  std::vector<int> global_ranks_;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> scratch_;
  std::uint64_t calls_ = 0;
  std::atomic<bool> aborted_ = false;
};

}  // namespace
}  // namespace tessera

extern "C" __attribute__((visibility("default"))) tessera::Communicator* tessera_open_mpi_world(
    const tessera::MpiOptions& options) {
  auto session = std::make_shared<tessera::Session>(options);
  MPI_Comm comm = MPI_COMM_NULL;
  tessera::check(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(tessera::index(size));
  for (int r = 0; r < size; ++r) ranks[tessera::index(r)] = r;
  return new tessera::MpiCommunicator(std::move(session), comm, std::move(ranks));
}
