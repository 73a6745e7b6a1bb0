// WaitMark: says for its lifetime that this rank waits for a message of another one.
//
// The flag is the rank's, which others may read at any time; nullptr = nobody wants to know. One
// thread marks.
#pragma once

#include <atomic>

namespace tessera {

class WaitMark {
 public:
  explicit WaitMark(std::atomic<bool>* waiting) : waiting_(waiting) {
    if (waiting_ != nullptr) *waiting_ = true;
  }
  ~WaitMark() {
    if (waiting_ != nullptr) *waiting_ = false;
  }
  WaitMark(const WaitMark&) = delete;
  WaitMark& operator=(const WaitMark&) = delete;

 private:
  std::atomic<bool>* waiting_;
};

}  // namespace tessera
