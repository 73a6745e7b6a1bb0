#include "executor/ordered/ordered_loops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/threads/shared_work.h"

// The same function for several processors; without fused additions they give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TESSERA_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TESSERA_CLONES
#endif

namespace tessera {
namespace {

constexpr std::int64_t kTileRows = 4, kTileOutputs = 2, kSumColumns = 32;
constexpr std::int64_t kWorkOfThread = std::int64_t{1} << 20;  // multiplications

/// Calls work(begin, end) for ranges of `count` items that cost `each` multiplications.
template <class Work>
void shared(std::int64_t count, std::int64_t each, std::int64_t unit, int threads, Work work) {
  const std::int64_t chunk =
      std::max<std::int64_t>(1, kWorkOfThread / std::max<std::int64_t>(each, 1));
  const std::int64_t rounded = (chunk + unit - 1) / unit * unit;
  if (threads == 1 || rounded >= count) {
    if (count > 0) work(0, count);
    return;
  }
  share_work(count, rounded, threads, work);
}

float lanes_sum(float (&lanes)[kDotLanes]) {
  for (std::int64_t step = kDotLanes / 2; step > 0; step /= 2) {
    for (std::int64_t l = 0; l < step; ++l) lanes[l] = lanes[l] + lanes[l + step];
  }
  return lanes[0];
}

TESSERA_CLONES float dot(const float* a, const float* b, std::int64_t count) {
  float lanes[kDotLanes] = {};
  std::int64_t k = 0;
  for (; k + kDotLanes <= count; k += kDotLanes) {
    for (std::int64_t l = 0; l < kDotLanes; ++l) lanes[l] = lanes[l] + a[k + l] * b[k + l];
  }
  for (std::int64_t l = 0; k + l < count; ++l) lanes[l] = lanes[l] + a[k + l] * b[k + l];
  return lanes_sum(lanes);
}

/// kTileRows rows times kTileOutputs outputs: what is loaded is used several times.
TESSERA_CLONES void dot_tile(const float* x, std::int64_t x_stride, const float* w,
                             std::int64_t inputs, float* y, std::int64_t y_stride) {
  float lanes[kTileRows][kTileOutputs][kDotLanes] = {};
  std::int64_t k = 0;
  for (; k + kDotLanes <= inputs; k += kDotLanes) {
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      for (std::int64_t o = 0; o < kTileOutputs; ++o) {
        for (std::int64_t l = 0; l < kDotLanes; ++l) {
          lanes[r][o][l] = lanes[r][o][l] + x[r * x_stride + k + l] * w[o * inputs + k + l];
        }
      }
    }
  }
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    for (std::int64_t o = 0; o < kTileOutputs; ++o) {
      for (std::int64_t l = 0; k + l < inputs; ++l) {
        lanes[r][o][l] = lanes[r][o][l] + x[r * x_stride + k + l] * w[o * inputs + k + l];
      }
      y[r * y_stride + o] = lanes_sum(lanes[r][o]);
    }
  }
}

void dots_of_rows(const ProductShape& s, const float* x, const float* w, float* y, std::int64_t lo,
                  std::int64_t hi) {
  for (std::int64_t r = lo; r < hi; r += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, hi - r);
    for (std::int64_t o = 0; o < s.outputs; o += kTileOutputs) {
      const std::int64_t outputs = std::min(kTileOutputs, s.outputs - o);
      if (rows == kTileRows && outputs == kTileOutputs) {
        dot_tile(x + r * s.x_stride, s.x_stride, w + o * s.inputs, s.inputs, y + r * s.y_stride + o,
                 s.y_stride);
        continue;
      }
      for (std::int64_t i = r; i < r + rows; ++i) {
        for (std::int64_t j = o; j < o + outputs; ++j) {
          y[i * s.y_stride + j] = dot(x + i * s.x_stride, w + j * s.inputs, s.inputs);
        }
      }
    }
  }
}

/// Up to kSumColumns outputs of one row.
TESSERA_CLONES void sum_columns(const float* x, const float* w, std::int64_t w_stride,
                                std::int64_t inputs, float* y) {
  float sums[kSumColumns] = {};
  for (std::int64_t k = 0; k < inputs; ++k) {
    for (std::int64_t o = 0; o < kSumColumns; ++o) sums[o] = sums[o] + x[k] * w[k * w_stride + o];
  }
  for (std::int64_t o = 0; o < kSumColumns; ++o) y[o] = sums[o];
}

void sums_of_rows(const ProductShape& s, const float* x, const float* w, std::int64_t w_stride,
                  float* y, std::int64_t lo, std::int64_t hi) {
  for (std::int64_t o = 0; o < s.outputs; o += kSumColumns) {
    for (std::int64_t r = lo; r < hi; ++r) {
      const float* row = x + r * s.x_stride;
      if (o + kSumColumns <= s.outputs) {
        sum_columns(row, w + o, w_stride, s.inputs, y + r * s.y_stride + o);
        continue;
      }
      for (std::int64_t j = o; j < s.outputs; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < s.inputs; ++k) sum = sum + row[k] * w[k * w_stride + j];
        y[r * s.y_stride + j] = sum;
      }
    }
  }
}

TESSERA_CLONES void add_weighted(float weight, const float* v, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] + weight * v[i];
}

/// One query head; `scores` is scratch.
void attend_head(const OrderedQuery& query, std::int64_t first, std::int64_t kv_head,
                 const PagedKeys& cache, const float* q, std::vector<float>& scores, float* out) {
  const auto at = [&](std::int64_t key) {
    const std::int64_t page = query.pages[key / cache.page_tokens];
    return ((page * cache.kv_heads + kv_head) * cache.page_tokens + key % cache.page_tokens) *
           cache.head_dim;
  };
  const float scale = 1.0F / std::sqrt(static_cast<float>(cache.head_dim));
  scores.clear();
  for (std::int64_t key = first; key <= query.position; ++key) {
    scores.push_back(dot(q, cache.keys + at(key), cache.head_dim) * scale);
  }
  const float largest = *std::max_element(scores.begin(), scores.end());
  float total = 0;
  std::fill(out, out + cache.head_dim, 0.0F);
  for (std::int64_t key = first; key <= query.position; ++key) {
    const float weight = std::exp(scores[static_cast<std::size_t>(key - first)] - largest);
    total = total + weight;
    add_weighted(weight, cache.values + at(key), cache.head_dim, out);
  }
  for (std::int64_t i = 0; i < cache.head_dim; ++i) out[i] = out[i] / total;
}

}  // namespace

void ordered_dots(const ProductShape& shape, const float* x, const float* w, float* y,
                  int threads) {
  shared(shape.rows, shape.inputs * shape.outputs, kTileRows, threads,
         [&](std::int64_t lo, std::int64_t hi) { dots_of_rows(shape, x, w, y, lo, hi); });
}

void ordered_sums(const ProductShape& shape, const float* x, const float* w, std::int64_t w_stride,
                  float* y, int threads) {
  shared(shape.rows, shape.inputs * shape.outputs, 1, threads,
         [&](std::int64_t lo, std::int64_t hi) { sums_of_rows(shape, x, w, w_stride, y, lo, hi); });
}

void ordered_swiglu(const float* gate, const float* up, std::int64_t stride, std::int64_t rows,
                    std::int64_t columns, float* y, int threads) {
  shared(rows, 16 * columns, 1, threads, [&](std::int64_t lo, std::int64_t hi) {
    for (std::int64_t r = lo; r < hi; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const float g = gate[r * stride + c];
        y[r * columns + c] = g / (1.0F + std::exp(-g)) * up[r * stride + c];
      }
    }
  });
}

void ordered_attention(std::span<const OrderedQuery> queries,
                       std::span<const std::int64_t> kv_of_head, std::int64_t window,
                       const PagedKeys& cache, const float* q, float* out, int threads) {
  const auto heads = static_cast<std::int64_t>(kv_of_head.size());
  std::int64_t longest = 1;
  for (const OrderedQuery& query : queries) longest = std::max(longest, query.position + 1);
  shared(static_cast<std::int64_t>(queries.size()), 2 * longest * heads * cache.head_dim, 1,
         threads, [&](std::int64_t lo, std::int64_t hi) {
           std::vector<float> scores;
           for (std::int64_t i = lo; i < hi; ++i) {
             const OrderedQuery& query = queries[static_cast<std::size_t>(i)];
             const std::int64_t first =
                 window > 0 ? std::max<std::int64_t>(0, query.position - window + 1) : 0;
             for (std::int64_t h = 0; h < heads; ++h) {
               const std::int64_t place = (i * heads + h) * cache.head_dim;
               attend_head(query, first, kv_of_head[static_cast<std::size_t>(h)], cache, q + place,
                           scores, out + place);
             }
           }
         });
}

}  // namespace tessera
