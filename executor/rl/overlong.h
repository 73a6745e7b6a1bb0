// DAPO's soft punishment of responses that come near the longest allowed (Yu et al. 2025,
// arXiv:2503.14476, section 3.4).
//
// Lengths in tokens. Source: verl 0.9.1, experimental/reward_loop/reward_manager/dapo.py.
#pragma once

#include <cstdint>

namespace tessera {

/// verl's `reward.reward_kwargs.max_resp_len` and `.overlong_buffer_cfg`.
struct OverlongBuffer {
  bool enable = false;
  std::int64_t max_resp_len = 0;
  std::int64_t len = 0;  // of the buffer before it, 1 to max_resp_len
  double penalty_factor = 1;
  bool log = false;  // report reward/overlong_reward/mean, reward/overlong/mean
};

/// What is added to the score: 0 up to max_resp_len - len, then falling to -penalty_factor at
/// max_resp_len, and on at the same slope beyond it.
double overlong_reward(std::int64_t response_tokens, const OverlongBuffer& buffer);

}  // namespace tessera
