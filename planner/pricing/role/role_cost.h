// What a role costs under a candidate, and what one operation of it takes.
//
// Plain values; of one rank.
#pragma once

#include <cstdint>

#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"

namespace tessera {

/// Seconds of an operation, and the parts of them that are communication and the host's.
struct OperationTime {
  Seconds seconds, communication;
  Seconds host = {};  // software while the device waits, and what is fetched from host memory
  friend OperationTime operator+(const OperationTime& a, const OperationTime& b) {
    return {a.seconds + b.seconds, a.communication + b.communication, a.host + b.host};
  }
  friend OperationTime operator*(double count, const OperationTime& one) {
    return {count * one.seconds, count * one.communication, count * one.host};
  }
};

/// Cost of one role under one candidate.
struct RoleCost {
  PhaseSeconds seconds;           // of the role's phases; others 0
  PhaseSeconds communication;     // the part of `seconds` that is communication
  Bytes resident;                 // of the fullest rank outside the role's phases
  Bytes peak;                     // of the fullest rank in the worst of the role's phases
  EnumArray<Phase, Bytes> bytes;  // of that rank in each of them; others 0
  Bytes in_reshard;               // while weights move (phase reshard)
  /// A multiple of the token limit may need fewer bytes: an only micro-batch whose activations and
  /// gradients do not meet.
  bool may_shrink = false;
};

}  // namespace tessera
