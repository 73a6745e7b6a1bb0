// The integer weight of a token in a draw: the same bits on every processor.
//
// floor(2^40 e^x) for x <= 0, from fp32 additions and multiplications alone, each rounded once
// (never fused), so that hosts and GPUs agree. The relative error of e^x is below 4e-7. Plain C++17
// that nvcc compiles, too.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define TESSERA_BOTH_SIDES __host__ __device__
#else
#define TESSERA_BOTH_SIDES
#endif

namespace tessera {

namespace exact {
#ifdef __CUDA_ARCH__
__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float multiply(float a, float b) { return __fmul_rn(a, b); }
#else
TESSERA_BOTH_SIDES inline float add(float a, float b) { return a + b; }
TESSERA_BOTH_SIDES inline float multiply(float a, float b) { return a * b; }
#endif
}  // namespace exact

/// (logit - highest) / temperature in fp32: what draw_weight takes. `inverse` = 1 / temperature.
TESSERA_BOTH_SIDES inline float draw_exponent(float logit, float highest, float inverse) {
  return exact::multiply(exact::add(logit, -highest), inverse);
}

/// floor(2^40 e^x), x <= 0 or -inf.
TESSERA_BOTH_SIDES inline std::int64_t draw_weight(float x) {
  if (!(x > -28.0F)) return 0;  // 2^40 e^-28 < 1
  // e^x = 2^n e^r with |r| <= ln(2) / 2; ln(2) in two parts, of which the first has few bits, so
  // that n times it is exact.
  const float n_real = exact::add(exact::multiply(x, 1.44269502F), 12582912.0F);
  const float n = exact::add(n_real, -12582912.0F);  // rounds to the nearest integer
  float r = exact::add(x, -exact::multiply(n, 0.693359375F));
  r = exact::add(r, exact::multiply(n, 2.12194440e-4F));
  // Taylor's series; the first term left out is r^8 / 8! < 6e-9.
  float p = 1.98412698e-4F;
  p = exact::add(exact::multiply(p, r), 1.38888889e-3F);
  p = exact::add(exact::multiply(p, r), 8.33333333e-3F);
  p = exact::add(exact::multiply(p, r), 4.16666667e-2F);
  p = exact::add(exact::multiply(p, r), 1.66666667e-1F);
  p = exact::add(exact::multiply(p, r), 0.5F);
  p = exact::add(exact::multiply(p, r), 1.0F);
  p = exact::add(exact::multiply(p, r), 1.0F);
  const std::int32_t exponent = static_cast<std::int32_t>(n) + 40 + 127;
  const std::int32_t bits = exponent << 23;
  float scale = 0;
  memcpy(&scale, &bits, sizeof scale);
  return static_cast<std::int64_t>(exact::multiply(p, scale));
}

}  // namespace tessera
