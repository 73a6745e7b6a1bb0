// Sums of loss parts over micro-batches and data-parallel ranks.
//
// A plain value; ranks exchange it as bytes because they need not know one another's metric names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "executor/batching/batch.h"

namespace tessera {

struct LossParts {
  double value = 0, weight = 0;
  std::map<std::string, double> sums, weighted;  // weighted: means times weight

  void add(const LossGradient& part);
  void add(const LossParts& other);
  bool operator==(const LossParts&) const = default;
};

/// Bytes of this machine's order.
std::string to_bytes(const LossParts& parts);

/// Reads what to_bytes made. Throws Error{internal} on anything else.
LossParts loss_parts_from(std::string_view bytes);

/// Loss and sums as means over `replicas`, means by their weights.
UpdateResult mean_over_replicas(const LossParts& parts, int replicas);

}  // namespace tessera
