// Weights of two holders, compared by digests: a folder and a running server, or two servers.
//
// Every part that a worker of one holds is compared with every holder of the same elements on the
// other side, so that a replica that went wrong is found, too. Equal digests are equal bits but for
// a chance of 2^-64 a part. Free functions; the digests may fail as their holder says.
#pragma once

#include "executor/certificate/compare_weights.h"
#include "executor/vllm/verify/weight_holder.h"

namespace tessera {

/// Differing parts whose first and last differing elements are looked for; of what is beyond them
/// the bytes of a difference are those of the whole part.
inline constexpr std::size_t kMostLocated = 64;

/// `a` and `b` are of the table. Throws Error(bad_input) where both hold a tensor in a type of
/// which there are no digests.
WeightComparison compare_holders(const ParameterTable& table, const WeightHolder& a,
                                 const WeightHolder& b);

}  // namespace tessera
