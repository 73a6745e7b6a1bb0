// The ceiling of a training step: seconds that a rank's matrix products take by themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/weights/weights.h"

namespace tessera {

/// One product of forward, or of backward by the input or the weight (with fp32 result).
struct TimedProduct {
  std::string name;  // "qkv forward"
  std::int64_t m = 0, n = 0, k = 0;
  double seconds = 0;
  int per_micro_batch = 0;  // so many on this rank
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Each product of `weights`' layers and head for micro-batches of `tokens`, on random data; the
/// median of `rounds`.
std::vector<TimedProduct> time_products(const Weights& weights, std::int64_t tokens, int rounds);

}  // namespace tessera
