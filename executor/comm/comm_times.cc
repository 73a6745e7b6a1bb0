#include "executor/comm/comm_times.h"

#include <algorithm>
#include <array>
#include <utility>

#include "executor/comm/group_name.h"
#include "executor/comm/reduce_batch.h"

namespace tessera {

namespace {
enum Op { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kExchange, kBarrier };
constexpr std::array<const char*, 7> kOpNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "exchange", "barrier"};

template <class Blocks>
std::size_t total_bytes(const Blocks& blocks) {
  std::size_t sum = 0;
  for (const auto& block : blocks) sum += block.bytes;
  return sum;
}
}  // namespace

/// Passes every call on and notes how long it took.
class TimedCommunicator final : public Communicator, public BatchReducer, public NamedGroup {
 public:
  TimedCommunicator(std::unique_ptr<Communicator> inner, std::string name, CommTimes& times)
      : inner_(std::move(inner)), name_(std::move(name)), times_(times) {
    for (std::size_t op = 0; op < kOpNames.size(); ++op) {
      slots_[op] = &times_.times_["comm/" + name_ + "/" + kOpNames[op]];
    }
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    time(kAllReduce, bytes_of(count, type), [&] { inner_->all_reduce(data, count, type, op); });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    time(kAllGather, all_of(count, type), [&] { inner_->all_gather(send, receive, count, type); });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    time(kReduceScatter, all_of(count, type),
         [&] { inner_->reduce_scatter(send, receive, count, type, op); });
  }
  void all_gather_batch(std::span<const GatherBlock> blocks) override {
    time(kAllGather, total_bytes(blocks) * static_cast<std::size_t>(size()),
         [&] { inner_->all_gather_batch(blocks); });
  }
  void reduce_scatter_batch(std::span<const ReduceBlock> blocks, DType type, ReduceOp op) override {
    std::size_t count = 0;
    for (const ReduceBlock& block : blocks) count += block.count;
    time(kReduceScatter, all_of(count, type),
         [&] { tessera::reduce_scatter_batch(*inner_, blocks, type, op); });
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    time(kBroadcast, bytes_of(count, type), [&] { inner_->broadcast(data, count, type, root); });
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    time(kAllToAll, all_of(count, type), [&] { inner_->all_to_all(send, receive, count, type); });
  }
  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    time(kExchange, std::max(total_bytes(sends), total_bytes(receives)),
         [&] { inner_->exchange(sends, receives); });
  }
  void barrier() override {
    time(kBarrier, 0, [&] { inner_->barrier(); });
  }
  void abort() override { inner_->abort(); }
  void name_group(const std::string& name) override { tessera::name_group(*inner_, name); }
  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    return inner_->split(members);
  }

 private:
  static std::size_t bytes_of(std::size_t count, DType type) {
    return count * static_cast<std::size_t>(size_of(type));
  }
  std::size_t all_of(std::size_t count, DType type) const {
    return bytes_of(count, type) * static_cast<std::size_t>(size());
  }

  template <class Fn>
  void time(Op op, std::size_t bytes, Fn fn) {
    CommTime& into = *slots_[op];
    ++into.calls;
    into.bytes += static_cast<std::int64_t>(bytes);
    Span span;
    if (times_.timeline_ != nullptr) {
      span = {.rank = times_.rank_,
              .stream = Stream::communication,
              .phase = times_.phase_,
              .step = times_.step_,
              .name = name_ + "/" + kOpNames[op],
              .bytes = static_cast<std::int64_t>(bytes)};
    }
    if (times_.clock_ != nullptr) {
      const int begin = times_.clock_->mark();
      fn();
      const int end = times_.clock_->mark();
      if (begin >= 0 && end >= 0) times_.pending_.push_back({&into, std::move(span), begin, end});
      return;
    }
    const CommTimes::Clock::time_point begin = CommTimes::Clock::now();
    fn();
    times_.add(into, std::move(span), begin, CommTimes::Clock::now());
  }

  std::unique_ptr<Communicator> inner_;
  std::string name_;
  CommTimes& times_;
  std::array<CommTime*, 7> slots_;
};

CommTimes::CommTimes(int rank, std::unique_ptr<DeviceClock> clock, Timeline* timeline,
                     Clock::time_point origin)
    : rank_(rank), clock_(std::move(clock)), timeline_(timeline), origin_(origin) {}

void CommTimes::enter(Phase phase, int step) {
  phase_ = phase;
  step_ = step;
}

void CommTimes::add(CommTime& into, Span span, Clock::time_point begin, Clock::time_point end) {
  into.seconds += std::chrono::duration<double>(end - begin).count();
  if (timeline_ == nullptr) return;
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  span.start_ns = duration_cast<nanoseconds>(begin - origin_).count();
  span.end_ns = duration_cast<nanoseconds>(end - origin_).count();
  timeline_->spans.push_back(std::move(span));
}

void CommTimes::resolve() {
  if (clock_ == nullptr || pending_.empty()) return;
  const std::vector<Clock::time_point> times = clock_->resolve();
  for (Pending& pending : pending_) {
    add(*pending.into, std::move(pending.span), times[static_cast<std::size_t>(pending.begin)],
        times[static_cast<std::size_t>(pending.end)]);
  }
  pending_.clear();
}

std::map<std::string, double> CommTimes::metrics() {
  resolve();
  std::map<std::string, double> made;
  for (auto& [name, time] : times_) {
    if (time.calls == 0) continue;
    made[name + "_s"] = time.seconds;
    made[name + "_bytes"] = static_cast<double>(time.bytes);
    time = {};
  }
  return made;
}

std::unique_ptr<Communicator> CommTimes::timed(std::unique_ptr<Communicator> group,
                                               const std::string& name) {
  return std::make_unique<TimedCommunicator>(std::move(group), name, *this);
}

GroupDecorator CommTimes::decorator(const std::string& prefix) {
  return [this, prefix](std::unique_ptr<Communicator> group, const std::string& name) {
    return timed(std::move(group), prefix + name);
  };
}

}  // namespace tessera
