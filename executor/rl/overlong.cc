#include "executor/rl/overlong.h"

#include <algorithm>

namespace tessera {

double overlong_reward(std::int64_t response_tokens, const OverlongBuffer& buffer) {
  const auto exceeded = static_cast<double>(response_tokens - (buffer.max_resp_len - buffer.len));
  return std::min(-exceeded / static_cast<double>(buffer.len) * buffer.penalty_factor, 0.0);
}

}  // namespace tessera
