// ReshardReport: bytes, seconds and transport of one reshard; and the hooks around a reshard.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "cost_models/spec/dtype.h"

namespace tessera {

/// Received bytes are counted where copies and messages are begun.
struct ReshardReport {
  double seconds = 0;            // from the first rank's start to the last rank's end
  std::int64_t received = 0;     // by this rank
  std::int64_t busiest = 0;      // by the busiest rank
  std::int64_t lower_bound = 0;  // of the busiest rank
  std::int64_t planned = 0;      // `busiest` by the plan; more where options spared bytes
  double exposed_s = 0;          // of `seconds`, what the caller waited
  ReshardTransport transport = ReshardTransport::send_recv;
  double cast_error = 0;      // of a cast on the wire: |cast(w) - w| / |w| over the model, else 0
  std::optional<DType> wire;  // 16-bit type through which fp32 weights went; unset = as they are
  bool verified = false;
  /// A first reshard that was done every way, to choose: what each took, in the order tried.
  struct Trial {
    ReshardTransport transport = ReshardTransport::send_recv;
    double seconds = 0;
  };
  std::vector<Trial> tried;
  double gb_per_s() const {
    return seconds > 0 ? static_cast<double>(busiest) * 1e-9 / seconds : 0;
  }
};

/// "[Reshard] 15.8 ms by copy_engine, 5.71 GB received by the busiest rank (lower bound 5.71 GB),
/// 361 GB/s".
std::string to_string(const ReshardReport& report);

/// Called on every rank before the first and after the last byte moves.
struct ReshardHooks {
  std::function<void()> on_start;
  std::function<void(const ReshardReport&)> on_end;
};

}  // namespace tessera
