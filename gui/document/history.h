// SPDX-License-Identifier: GPL-3.0-or-later
// Earlier and later values of something that is edited.
//
// A plain value. There is always a present one; a new value forgets those that were undone.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tessera::gui {

template <class Value>
class History {
 public:
  explicit History(Value first) : values_{std::move(first)} {}

  const Value& now() const { return values_[at_]; }
  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < values_.size(); }

  /// Beyond kMost values the oldest is forgotten.
  void edit(Value value) {
    values_.resize(at_ + 1);
    values_.push_back(std::move(value));
    if (values_.size() > kMost) values_.erase(values_.begin());
    at_ = values_.size() - 1;
  }
  /// The present value becomes another without a step of its own.
  void replace(Value value) { values_[at_] = std::move(value); }
  /// Changes what every value, present or not, says of something outside of it.
  template <class Change>
  void each(const Change& change) {
    for (Value& value : values_) change(value);
  }
  /// Preconditions: can_undo(), can_redo().
  const Value& undo() { return values_[--at_]; }
  const Value& redo() { return values_[++at_]; }

 private:
  static constexpr std::size_t kMost = 1000;

  std::vector<Value> values_;
  std::size_t at_ = 0;
};

}  // namespace tessera::gui
