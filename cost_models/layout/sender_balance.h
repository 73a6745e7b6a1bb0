// Who of several holders sends how much, so that the busiest sender sends as little as possible.
//
// Demands with the same holders are one class; a class may be shared among its holders in any
// proportion. Minimising the busiest sender is a parametric maximum flow (classes -> holders). Pure
// functions of their arguments; counts are bytes.
#pragma once

#include <vector>

#include "cost_models/spec/units.h"

namespace tessera {

/// Bytes that any of `holders` can send.
struct DemandClass {
  std::vector<int> holders;  // dense indices, ascending, not empty
  std::vector<bool> near;    // beside holders: preferred; may be empty
  Bytes bytes;
};

struct SenderShare {
  int holder = 0;
  Bytes bytes;
};

struct SenderBalance {
  /// Bytes of the busiest sender: the fractional optimum, rounded up.
  Bytes min_max;
  /// By class: who sends how much. A holder stands behind the first place of at most one list, so
  /// a consumer that fills the lists in order and lets later entries begin up to one block early
  /// adds at most one block to any sender (the rounding of Lenstra, Shmoys and Tardos, Math.
  /// Programming 46, 1990: the shares form a forest).
  std::vector<std::vector<SenderShare>> shares;
};

/// Balances `classes` over `holders` senders. Below the busiest, senders are levelled too. Near
/// holders alone serve what they can where the busiest sender does not send more for it.
SenderBalance balance_senders(const std::vector<DemandClass>& classes, int holders);

}  // namespace tessera
