// Token limits that make a difference: those that cut a call into fewer micro-batches than any
// smaller one.
//
// What a call takes depends on its number of micro-batches alone (cost_models/packing.h; of few
// sequences the mean number, cost_models/few_sequences.h), what it needs grows with the limit. So
// the smallest limit of every number stands for all limits of that number. Limits count longest
// sequences: in quarters up to two, in halves up to four, then whole ones; where all sequences are
// alike parts of one make no difference. Keeps what it has worked out; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "cost_models/few_sequences.h"
#include "cost_models/packing.h"
#include "cost_models/spec/workload.h"

namespace tessera {

class DistinctLimits {
 public:
  explicit DistinctLimits(const Workload& workload);

  /// Tokens, ascending, from a longest sequence to the first limit that holds a whole call, and of
  /// those beyond a longest sequence at most `most`. Calls of each of so many replicas work on
  /// `all` of its sequences, or where they train on `mini_batch` of them at a time.
  const std::vector<std::int64_t>& of(std::int64_t mini_batch, std::int64_t all, int replicas,
                                      std::int64_t most);

 private:
  struct Limit {
    std::int64_t tokens = 0;
    double held = 0;  // sequences of a micro-batch, in expectation
  };
  const Limit& limit(std::size_t index);
  double parts(std::int64_t sequences, int replicas, const Limit& limit);

  ExpectedPacking packing_;
  FewSequences few_;
  std::int64_t longest_;  // tokens
  std::vector<Limit> limits_;
  std::int64_t parts_ = 0;  // of the last of them
  /// By mini_batch, all, replicas, most.
  std::map<std::array<std::int64_t, 4>, std::vector<std::int64_t>> known_;
};

}  // namespace tessera
