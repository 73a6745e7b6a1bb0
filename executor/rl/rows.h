// Ragged rows of per-token numbers and the masked statistics that every algorithm uses.
//
// The tokens of row b are entries [begin[b], begin[b+1]) of every flat array; an entry whose mask
// is 0 (a hole, padding) enters no result, whatever it holds. Plain values; fp64 throughout.
// Definitions: verl 0.9.1, utils/torch_functional.py masked_*.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/rl/experience.h"

namespace tessera {

struct Rows {
  std::vector<std::int64_t> begin = {0};  // row count + 1 offsets
  std::vector<std::uint8_t> mask;         // per entry; empty = all ones
  std::int64_t padded_width = 0;          // of the padded batch; 0 = the longest row

  std::int64_t count() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t entries() const { return begin.back(); }
  bool valid(std::int64_t entry) const {
    return mask.empty() || mask[static_cast<std::size_t>(entry)] != 0;
  }
  std::int64_t width() const;
  std::int64_t valid_in(std::int64_t row) const;
  std::int64_t valid_entries() const;
  std::int64_t nonempty_rows() const;  // with at least one valid entry
};

using Array = std::vector<double>;
using View = std::span<const double>;
/// By verl's metric name.
using Metrics = std::map<std::string, double>;

/// Rows of the responses of `sequences`; `padded_width` as in Rows. An entry is valid that is
/// neither a hole nor rejected.
Rows rows_of(std::span<const Sequence> sequences, std::int64_t padded_width = 0);
/// Rows of some sequences, in the order of `which` (a micro-batch).
Rows rows_of(std::span<const Sequence> sequences, std::span<const std::int64_t> which,
             std::int64_t padded_width = 0);

/// Entries of the responses that are no holes, rejected ones included.
std::int64_t tokens_before_rejection(std::span<const Sequence> sequences);

/// One per-token field of all or some sequences as a flat array. Precondition: each field is as
/// long as its response.
Array flat(std::span<const Sequence> sequences, std::vector<float> Sequence::*field);
Array flat(std::span<const Sequence> sequences, std::span<const std::int64_t> which,
           std::vector<float> Sequence::*field);
/// The way back: entry i of `values` into `field` of the sequences in order.
void store(View values, std::span<Sequence> sequences, std::vector<float> Sequence::*field);
void store(View values, std::span<Sequence> sequences, std::span<const std::int64_t> which,
           std::vector<float> Sequence::*field);

/// Sum over valid entries.
double masked_sum(const Rows& rows, View values);
Array masked_sum_rows(const Rows& rows, View values);
/// sum / N; 0 where nothing is valid.
double masked_mean(const Rows& rows, View values);
Array masked_mean_rows(const Rows& rows, View values);
/// Mean squared distance from the mean, times N/(N-1) when unbiased. Throws Error{check_failed}
/// when unbiased and N <= 1: nothing can be whitened then.
double masked_variance(const Rows& rows, View values, bool unbiased = true);
/// (x - mean) / sqrt(variance + 1e-8), the mean added back when it is kept. Entries that are not
/// valid are transformed too and carry no meaning.
Array masked_whiten(const Rows& rows, View values, bool shift_mean = true);

}  // namespace tessera
