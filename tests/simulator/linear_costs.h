// Costs of a replica that grow by sequences and context, for tests of its schedule.
#pragma once

#include "simulator/rollout/replica.h"

namespace tessera {

inline ReplicaCosts linear_costs() {
  return {[](double prompts, double sequences) {
            return OperationTime{Seconds{3 * prompts + 0.5 * sequences}, Seconds{prompts}};
          },
          [](double sequences, double context) {
            return OperationTime{Seconds{1 + 0.25 * sequences + 0.01 * sequences * context},
                                 Seconds{0.5}};
          }};
}

}  // namespace tessera
