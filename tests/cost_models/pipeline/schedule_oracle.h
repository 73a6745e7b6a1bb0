// A pipeline's schedule written apart: events in the order of time, and the order of operations as
// Megatron-LM's core/pipeline_parallel/schedules.py counts it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera {

class ScheduleOracle {
 public:
  /// `shares`: what each part of the model takes by the mean of all; empty: all take as long.
  ScheduleOracle(int stages, int chunks, bool training, std::vector<double> loads,
                 std::vector<double> shares = {})
      : stages_(stages),
        chunks_(chunks),
        training_(training),
        loads_(std::move(loads)),
        shares_(std::move(shares)) {}

  /// When the last operation ends; a forward pass of load 1 on a rank takes 1, a backward pass 2.
  /// With chunks the micro-batches are a multiple of the stages.
  double length() {
    for (int rank = 0; rank < stages_; ++rank) programs_.push_back(program(rank));
    next_.assign(programs_.size(), 0);
    busy_.assign(programs_.size(), false);
    done_.assign(2 * loads_.size() * static_cast<std::size_t>(stages_ * chunks_), false);
    double now = 0;
    for (int rank = 0; rank < stages_; ++rank) start(rank, now);
    while (!events_.empty()) {
      const auto [time, rank] = events_.top();
      events_.pop();
      now = time;
      const auto index = static_cast<std::size_t>(rank);
      done_[place(programs_[index][next_[index]++])] = true;
      busy_[index] = false;
      // What waited for this is on the rank itself or on a neighbour.
      for (const int any : {rank, (rank + 1) % stages_, (rank + stages_ - 1) % stages_}) {
        start(any, now);
      }
    }
    return now;
  }
  bool complete() const {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      if (next_[rank] != programs_[rank].size()) return false;
    }
    return !programs_.empty();
  }

 private:
  using Operation = std::tuple<bool, int, int>;  // forward, part of the model, micro-batch

  Operation nth(int rank, int k, bool forward) const {
    const int in_group = k % (stages_ * chunks_);
    const int chunk = in_group / stages_;
    const int m = k / (stages_ * chunks_) * stages_ + in_group % stages_;
    return {forward, (forward ? chunk : chunks_ - 1 - chunk) * stages_ + rank, m};
  }

  std::vector<Operation> program(int rank) const {
    const int all = chunks_ * static_cast<int>(loads_.size());
    const auto operation = [&](int k, bool forward) {
      return chunks_ == 1 ? Operation{forward, rank, k} : nth(rank, k, forward);
    };
    const int ahead =
        chunks_ == 1 ? stages_ - rank - 1 : 2 * (stages_ - rank - 1) + (chunks_ - 1) * stages_;
    const int warm_up = training_ ? std::min(all, ahead) : all;
    std::vector<Operation> operations;
    for (int k = 0; k < warm_up; ++k) operations.push_back(operation(k, true));
    for (int k = warm_up; k < all; ++k) {
      operations.push_back(operation(k, true));
      operations.push_back(operation(k - warm_up, false));
    }
    for (int k = all - warm_up; training_ && k < all; ++k) {
      operations.push_back(operation(k, false));
    }
    return operations;
  }

  std::size_t place(const Operation& operation) const {
    const auto [forward, part, m] = operation;
    const int direction = forward ? 1 : 0;
    return static_cast<std::size_t>(direction * stages_ * chunks_ + part) * loads_.size() +
           static_cast<std::size_t>(m);
  }

  bool may_start(const Operation& operation) const {
    const auto [forward, part, m] = operation;
    if (forward) return part == 0 || done_[place({true, part - 1, m})];
    const bool last = part + 1 == stages_ * chunks_;
    return done_[place(last ? Operation{true, part, m} : Operation{false, part + 1, m})];
  }

  void start(int rank, double now) {
    const auto index = static_cast<std::size_t>(rank);
    if (busy_[index] || next_[index] == programs_[index].size()) return;
    const Operation& operation = programs_[index][next_[index]];
    if (!may_start(operation)) return;
    busy_[index] = true;
    const auto [forward, part, m] = operation;
    const double share = shares_.empty() ? 1 : shares_[static_cast<std::size_t>(part)];
    const double passes = (forward ? 1.0 : 2.0) / chunks_ * share;
    events_.emplace(now + passes * loads_[static_cast<std::size_t>(m)], rank);
  }

  int stages_, chunks_;
  bool training_;
  std::vector<double> loads_, shares_;
  std::vector<std::vector<Operation>> programs_;
  std::vector<std::size_t> next_;
  std::vector<bool> busy_;
  std::vector<bool> done_;
  using Event = std::pair<double, int>;  // an operation's end, rank
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace tessera
