#include "executor/attention/partial_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "executor/tensor/to_device.h"

namespace tessera {
namespace {

using torch::Tensor;

std::int64_t size_of_all(const std::vector<Interval>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                         [](std::int64_t sum, const Interval& p) { return sum + p.size(); });
}

Tensor on_device(const std::vector<std::int64_t>& values, torch::Device device) {
  return to_device(torch::tensor(values, torch::kInt64), device);
}

/// One side of a part: its rows in order, their padded block, and their lengths.
struct Side {
  std::vector<std::int64_t> rows, gather, place, lengths;
  std::int64_t longest = 0;

  void add(const std::vector<Interval>& parts) {
    lengths.push_back(size_of_all(parts));
    longest = std::max(longest, lengths.back());
    for (const Interval& part : parts) {
      for (std::int64_t row = part.lo; row < part.hi; ++row) rows.push_back(row);
    }
  }
  /// Padding repeats row 0.
  void pad() {
    gather.assign(lengths.size() * static_cast<std::size_t>(longest), 0);
    std::size_t next = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      for (std::int64_t i = 0; i < lengths[s]; ++i, ++next) {
        place.push_back(static_cast<std::int64_t>(s) * longest + i);
        gather[static_cast<std::size_t>(place.back())] = rows[next];
      }
    }
  }
  Tensor index(std::int64_t count, torch::Device device) const {
    const bool all =
        static_cast<std::int64_t>(rows.size()) == count && std::is_sorted(rows.begin(), rows.end());
    return all ? Tensor() : on_device(rows, device);
  }
};

Tensor hidden_keys(const Side& q, const Side& k, bool causal, torch::Device device) {
  const auto sequences = static_cast<std::int64_t>(q.lengths.size());
  const auto limits = [](const Side& side) {
    return torch::tensor(side.lengths, torch::kInt64).view({-1, 1, 1});
  };
  const Tensor row = torch::arange(q.longest).view({1, -1, 1});
  const Tensor column = torch::arange(k.longest).view({1, 1, -1});
  Tensor hidden = (row >= limits(q)).logical_or(column >= limits(k));
  if (causal) hidden = hidden.logical_or(column > row);
  return to_device(hidden.view({sequences, 1, 1, q.longest, k.longest}).contiguous(), device);
}

/// fp32 [sequences, kv heads, share * longest, dim] of x [rows, heads, dim].
Tensor block_of(const Tensor& x, const Tensor& gather, std::int64_t sequences, std::int64_t longest,
                std::int64_t kv_heads) {
  const std::int64_t dim = x.size(2), share = x.size(1) / kv_heads;
  return x.index_select(0, gather)
      .to(torch::kFloat32)
      .view({sequences, longest, kv_heads, share, dim})
      .permute({0, 2, 3, 1, 4})
      .reshape({sequences, kv_heads, share * longest, dim});
}

/// The way back, of the rows at `place`: [rows, heads, dim].
Tensor rows_from_block(const Tensor& block, const Tensor& place, std::int64_t longest) {
  const std::int64_t sequences = block.size(0), kv = block.size(1), dim = block.size(3);
  const std::int64_t share = block.size(2) / std::max<std::int64_t>(longest, 1);
  return block.view({sequences, kv, share, longest, dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({sequences * longest, kv * share, dim})
      .index_select(0, place);
}

struct Block {
  Tensor q, k, v, scores;  // scores [sequences, kv heads, share * q_longest, k_longest]
};

double scale_of(const Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(2))); }

Block scored(const AttentionPart& part, const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t n = part.sequences, kv = k.size(1), share = q.size(1) / kv;
  Block block{block_of(q, part.q_gather, n, part.q_longest, kv),
              block_of(k, part.k_gather, n, part.k_longest, kv),
              block_of(v, part.k_gather, n, part.k_longest, kv),
              {}};
  block.scores = at::matmul(block.q, block.k.transpose(2, 3)).mul_(scale_of(q));
  block.scores.view({n, kv, share, part.q_longest, part.k_longest})
      .masked_fill_(part.hidden, -std::numeric_limits<float>::infinity());
  return block;
}

}  // namespace

Tensor rows_of(const Tensor& x, const Tensor& rows) {
  return rows.defined() ? x.index_select(0, rows) : x;
}

AttentionPart plan_part(const std::vector<PartRows>& sequences, bool causal, std::int64_t q_count,
                        std::int64_t k_count, bool packed, torch::Device device) {
  AttentionPart part{.causal = causal, .packed = packed};
  part.sequences = static_cast<std::int64_t>(sequences.size());
  if (part.empty()) return part;
  Side q, k;
  for (const PartRows& sequence : sequences) {
    q.add(sequence.queries);
    k.add(sequence.keys);
  }
  part.q_rows = q.index(q_count, device);
  part.k_rows = k.index(k_count, device);
  if (packed) {
    part.batch = fused::attention_batch(q.lengths, device);
    if (!causal) fused::set_keys(part.batch, k.lengths, device);
    return part;
  }
  q.pad();
  k.pad();
  part.q_longest = q.longest;
  part.k_longest = k.longest;
  part.q_gather = on_device(q.gather, device);
  part.k_gather = on_device(k.gather, device);
  part.q_place = on_device(q.place, device);
  part.k_place = on_device(k.place, device);
  part.hidden = hidden_keys(q, k, causal, device);
  return part;
}

PartOutput attend_part(const AttentionPart& part, const Tensor& q, const Tensor& k,
                       const Tensor& v) {
  if (part.packed) {
    const fused::Attended result = fused::attend(
        part.batch, rows_of(q, part.q_rows), rows_of(k, part.k_rows), rows_of(v, part.k_rows), 0);
    return {result.out, result.stats};
  }
  const Block block = scored(part, q, k, v);
  const Tensor lse = block.scores.logsumexp(-1, /*keepdim=*/true);
  const Tensor out = at::matmul(block.scores.sub(lse).exp_(), block.v);
  return {rows_from_block(out, part.q_place, part.q_longest),
          rows_from_block(lse, part.q_place, part.q_longest).squeeze(2)};
}

PartGradients attend_part_backward(const AttentionPart& part, const Tensor& q, const Tensor& k,
                                   const Tensor& v, const Tensor& out, const Tensor& lse,
                                   const Tensor& gradient) {
  if (part.packed) {
    const fused::HeadGradients d = fused::attend_backward(
        part.batch, rows_of(q, part.q_rows), rows_of(k, part.k_rows), rows_of(v, part.k_rows),
        rows_of(out, part.q_rows), rows_of(lse, part.q_rows), rows_of(gradient, part.q_rows), 0);
    return {d.q, d.k, d.v};
  }
  const std::int64_t n = part.sequences, kv = k.size(1);
  const auto queries = [&](const Tensor& x) {
    return block_of(x, part.q_gather, n, part.q_longest, kv);
  };
  const Block block = scored(part, q, k, v);
  // Rows of padding are hidden altogether: exp(-inf) = 0.
  const Tensor p = block.scores.sub(queries(lse.unsqueeze(2))).exp_();
  const Tensor g = queries(gradient);
  const Tensor d_v = at::matmul(p.transpose(2, 3), g);
  const Tensor delta = (g * queries(out)).sum(-1, /*keepdim=*/true);
  const Tensor d_scores =
      at::matmul(g, block.v.transpose(2, 3)).sub_(delta).mul_(p).mul_(scale_of(q));
  return {
      rows_from_block(at::matmul(d_scores, block.k), part.q_place, part.q_longest),
      rows_from_block(at::matmul(d_scores.transpose(2, 3), block.q), part.k_place, part.k_longest),
      rows_from_block(d_v, part.k_place, part.k_longest)};
}

}  // namespace tessera
