// Scores over vocabulary rows, and AdamW with its norm over flat buffers.
#include <algorithm>

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kRowThreads = 512;
constexpr int kFlatThreads = 256;
/// Blocks of a kernel that strides over all elements: several for every multiprocessor.
constexpr std::int64_t kMostBlocks = 2048;

/// A running softmax: the highest element, sum of e^(x - highest), sum of that times (x - highest).
struct Softmax {
  float highest = -INFINITY, sum = 0, weighted = 0;
};

__device__ Softmax joined(const Softmax& a, const Softmax& b) {
  const float highest = fmaxf(a.highest, b.highest);
  if (highest == -INFINITY) return a;
  const auto moved = [highest](const Softmax& s, float& sum, float& weighted) {
    if (s.sum == 0) return;
    const float down = s.highest - highest, factor = __expf(down);
    sum += s.sum * factor;
    weighted += (s.weighted + s.sum * down) * factor;
  };
  Softmax out{highest, 0, 0};
  moved(a, out.sum, out.weighted);
  moved(b, out.sum, out.weighted);
  return out;
}

__device__ Softmax block_joined(Softmax s) {
  __shared__ Softmax shared[32];
  for (int step = 16; step > 0; step /= 2) {
    s = joined(s, {__shfl_xor_sync(0xffffffffu, s.highest, step),
                   __shfl_xor_sync(0xffffffffu, s.sum, step),
                   __shfl_xor_sync(0xffffffffu, s.weighted, step)});
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) shared[warp] = s;
  __syncthreads();
  s = {-INFINITY, 0, 0};
  if (lane < static_cast<int>(blockDim.x) / 32) {
    s.highest = shared[lane].highest;
    s.sum = shared[lane].sum;
    s.weighted = shared[lane].weighted;
  }
  for (int step = 16; step > 0; step /= 2) {
    s = joined(s, {__shfl_xor_sync(0xffffffffu, s.highest, step),
                   __shfl_xor_sync(0xffffffffu, s.sum, step),
                   __shfl_xor_sync(0xffffffffu, s.weighted, step)});
  }
  return s;
}

template <typename T, int N>
__global__ void sums_kernel(const T* logits, const std::int64_t* target, float cold,
                            std::int64_t columns, float* highest, float* sum, float* weighted,
                            float* picked) {
  const T* row = logits + blockIdx.x * columns;
  Softmax s;
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float x[N];
    load<T, N>(row + c, x);
    float top = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i) top = fmaxf(top, x[i]);
    top *= cold;
    if (top > s.highest) {
      if (s.sum > 0) {
        const float down = s.highest - top, factor = __expf(down);
        s.weighted = (s.weighted + s.sum * down) * factor;
        s.sum *= factor;
      }
      s.highest = top;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float below = x[i] * cold - s.highest, e = __expf(below);
      s.sum += e;
      s.weighted += e * below;
    }
  }
  s = block_joined(s);
  if (threadIdx.x != 0) return;
  const std::int64_t at = target[blockIdx.x];
  highest[blockIdx.x] = s.highest;
  sum[blockIdx.x] = s.sum;
  weighted[blockIdx.x] = s.weighted;
  picked[blockIdx.x] = at >= 0 && at < columns ? static_cast<float>(row[at]) * cold : 0.0F;
}

template <typename T, int N>
__global__ void gradient_kernel(T* logits, const std::int64_t* target, float cold,
                                const float* normalizer, const float* entropy, const float* g_score,
                                const float* g_entropy, std::int64_t columns) {
  T* row = logits + blockIdx.x * columns;
  const float log_sum = normalizer[blockIdx.x], score = g_score[blockIdx.x];
  const float chaos = g_entropy != nullptr ? g_entropy[blockIdx.x] : 0.0F;
  const float pull = score + (g_entropy != nullptr ? chaos * entropy[blockIdx.x] : 0.0F);
  const std::int64_t at = target[blockIdx.x];
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float x[N];
    load<T, N>(row + c, x);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float log_p = x[i] * cold - log_sum;
      x[i] = -__expf(log_p) * (pull + chaos * log_p) + (c + i == at ? score : 0.0F);
      x[i] *= cold;
    }
    store<T, N>(row + c, x);
  }
}

/// Elements [first, first + wide) of a chunk begin at 16 bytes and are a multiple of four; the rest
/// are read one by one.
struct Wide {
  std::int64_t first = 0, wide = 0;
};
__device__ Wide wide_part(const FlatChunk& chunk) {
  const std::int64_t head = (4 - chunk.offset % 4) % 4;
  const std::int64_t first = head < chunk.count ? head : chunk.count;
  return {first, (chunk.count - first) / 4 * 4};
}

__global__ void squares_kernel(const float* x, const FlatChunk* chunks, float* partial) {
  const FlatChunk chunk = chunks[blockIdx.x];
  const Wide part = wide_part(chunk);
  const float* from = x + chunk.offset;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < chunk.count - part.wide; i += blockDim.x) {
    const float v = from[i < part.first ? i : i + part.wide];
    sum += v * v;
  }
#pragma unroll 8
  for (std::int64_t i = threadIdx.x * 4; i < part.wide; i += blockDim.x * 4) {
    float v[4];
    load<float, 4>(from + part.first + i, v);
    sum += v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

struct Sources {
  const void* at[kMostSources];
};

template <typename T, int N>
__global__ void sum_sources_kernel(Sources sources, int count, std::int64_t elements, bool keep,
                                   T* y) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x * N;
  for (std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
       i < elements; i += step) {
    float x[kMostSources][N], sum[N] = {}, old[N] = {};
#pragma unroll
    for (int s = 0; s < kMostSources; ++s) {
      if (s < count) load<T, N>(static_cast<const T*>(sources.at[s]) + i, x[s]);
    }
    if (keep) load<T, N>(y + i, old);
#pragma unroll
    for (int s = 0; s < kMostSources; ++s) {
      if (s >= count) continue;
#pragma unroll
      for (int n = 0; n < N; ++n) sum[n] += x[s][n];
    }
#pragma unroll
    for (int n = 0; n < N; ++n) sum[n] += old[n];
    store<T, N>(y + i, sum);
  }
}

__global__ void add_up_kernel(const float* partial, std::int64_t count, float* sum) {
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += partial[i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = mine;
}

/// `param` is written N at a time where that is `wide`: at + what it is shifted by divides by N.
template <int N>
__device__ void adamw_elements(const AdamW& o, float decay, float scale, std::int64_t at,
                               const float* gradient, float* master, float* exp_avg,
                               float* exp_avg_sq, __nv_bfloat16* param, bool wide) {
  float g[N], p[N], m[N], v[N];
  load<float, N>(gradient + at, g);
  load<float, N>(master + at, p);
  load<float, N>(exp_avg + at, m);
  load<float, N>(exp_avg_sq + at, v);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float grad = g[i] * scale;
    p[i] -= o.learning_rate * decay * p[i];
    m[i] += (1.0F - o.beta1) * (grad - m[i]);
    v[i] = o.beta2 * v[i] + (1.0F - o.beta2) * grad * grad;
    const float width = sqrtf(v[i]) / sqrtf(o.correction2) + o.eps;
    p[i] -= o.learning_rate / o.correction1 * m[i] / width;
  }
  store<float, N>(master + at, p);
  store<float, N>(exp_avg + at, m);
  store<float, N>(exp_avg_sq + at, v);
  if (param == nullptr) return;
  if (wide) return store<__nv_bfloat16, N>(param + at, p);
#pragma unroll
  for (int i = 0; i < N; ++i) param[at + i] = static_cast<__nv_bfloat16>(p[i]);
}

__global__ void adamw_kernel(AdamW o, const FlatChunk* chunks, const float* squares,
                             const float* gradient, float* master, float* exp_avg,
                             float* exp_avg_sq, __nv_bfloat16* param) {
  const float norm = sqrtf(*squares);
  if (!isfinite(norm)) return;
  float scale = 1;
  if (o.clip_norm > 0) scale = fminf(1.0F, o.clip_norm / (norm + 1e-6F));
  const FlatChunk chunk = chunks[blockIdx.x];
  const auto [first, wide] = wide_part(chunk);
  if (param != nullptr) param += chunk.shift;
  for (std::int64_t i = threadIdx.x; i < chunk.count - wide; i += blockDim.x) {
    const std::int64_t at = chunk.offset + (i < first ? i : i + wide);
    adamw_elements<1>(o, chunk.decay, scale, at, gradient, master, exp_avg, exp_avg_sq, param,
                      true);
  }
  for (std::int64_t i = threadIdx.x * 4; i < wide; i += blockDim.x * 4) {
    adamw_elements<4>(o, chunk.decay, scale, chunk.offset + first + i, gradient, master, exp_avg,
                      exp_avg_sq, param, chunk.shift % 4 == 0);
  }
}

}  // namespace

void vocabulary_sums(Real real, const void* logits, const std::int64_t* target, float temperature,
                     std::int64_t rows, std::int64_t columns, float* highest, float* sum,
                     float* weighted, float* picked, void* stream) {
  if (rows == 0) return;
  const bool vector = columns % wide_of(real) == 0 && aligned(logits);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    sums_kernel<T, N><<<static_cast<unsigned>(rows), kRowThreads, 0, stream_of(stream)>>>(
        static_cast<const T*>(logits), target, 1.0F / temperature, columns, highest, sum, weighted,
        picked);
  });
  check_launch("vocabulary_sums");
}

void vocabulary_gradient(Real real, void* logits, const std::int64_t* target, float temperature,
                         const float* normalizer, const float* entropy, const float* g_score,
                         const float* g_entropy, std::int64_t rows, std::int64_t columns,
                         void* stream) {
  if (rows == 0) return;
  const bool vector = columns % wide_of(real) == 0 && aligned(logits);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    gradient_kernel<T, N><<<static_cast<unsigned>(rows), kRowThreads, 0, stream_of(stream)>>>(
        static_cast<T*>(logits), target, 1.0F / temperature, normalizer, entropy, g_score,
        g_entropy, columns);
  });
  check_launch("vocabulary_gradient");
}

void sum_of_squares(const float* x, const FlatChunk* chunks, std::int64_t count, float* partial,
                    float* sum, void* stream) {
  if (count > 0) {
    squares_kernel<<<static_cast<unsigned>(count), kFlatThreads, 0, stream_of(stream)>>>(x, chunks,
                                                                                         partial);
  }
  add_up_kernel<<<1, 1024, 0, stream_of(stream)>>>(partial, count, sum);
  check_launch("sum_of_squares");
}

void sum_sources(Real real, const void* const* sources, int count, std::int64_t elements, bool keep,
                 void* y, void* stream) {
  if (elements == 0) return;
  Sources all{};
  bool vector = elements % wide_of(real) == 0 && aligned(y);
  for (int i = 0; i < count; ++i) {
    all.at[i] = sources[i];
    vector = vector && aligned(sources[i]);
  }
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const std::int64_t each = kFlatThreads * N;
    const auto blocks = static_cast<unsigned>(std::min((elements + each - 1) / each, kMostBlocks));
    sum_sources_kernel<T, N><<<blocks, kFlatThreads, 0, stream_of(stream)>>>(
        all, count, elements, keep, static_cast<T*>(y));
  });
  check_launch("sum_sources");
}

void adamw(const AdamW& options, const FlatChunk* chunks, std::int64_t count, const float* squares,
           const float* gradient, float* master, float* exp_avg, float* exp_avg_sq, void* param,
           void* stream) {
  if (count == 0) return;
  adamw_kernel<<<static_cast<unsigned>(count), kFlatThreads, 0, stream_of(stream)>>>(
      options, chunks, squares, gradient, master, exp_avg, exp_avg_sq,
      static_cast<__nv_bfloat16*>(param));
  check_launch("adamw");
}

}  // namespace tessera::kernels
