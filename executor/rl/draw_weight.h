// The integer weight of a token in a draw: the same bits on every processor.
//
// From fp32 additions and multiplications alone, each rounded once (never fused), so that hosts and
// GPUs agree. The relative error of a power is below 2e-7, beside that of its exponent. Plain C++17
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

/// log2(e) / temperature: the exponents of a draw are powers of two.
inline float exponent_scale(double temperature) {
  return static_cast<float>(1.4426950408889634 / temperature);
}

/// floor(2^40 2^y) with y = (logit - highest) * scale, for logits at most as high; -inf is 0.
TESSERA_BOTH_SIDES inline std::int64_t draw_weight(float logit, float highest, float scale) {
  float y = exact::multiply(exact::add(logit, -highest), scale);
  y = y > -42.0F ? y : -42.0F;  // less than 1 there; without a branch, which GPUs would wait in
  // Adding 3 * 2^22 rounds to the nearest integer n, which is then in the low bits of the sum: n +
  // 40 here. What is left of y, at most 1/2 in size, is exact.
  const float shifted = exact::add(y, 12582952.0F);
  const float r = exact::add(y, -exact::add(shifted, -12582952.0F));
  // 2^r = 1 + r q(r), with the q of fourth degree whose largest relative error over these r is
  // least (9.2e-8 before rounding).
  float p = 1.32646994e-3F;
  p = exact::add(exact::multiply(p, r), 9.67153441e-3F);
  p = exact::add(exact::multiply(p, r), 5.55073395e-2F);
  p = exact::add(exact::multiply(p, r), 2.40222424e-1F);
  p = exact::add(exact::multiply(p, r), 6.93147004e-1F);
  p = exact::add(exact::multiply(p, r), 1.0F);
  std::uint32_t bits = 0, exponent = 0;
  memcpy(&bits, &p, sizeof bits);
  memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 23;  // p * 2^(n + 40)
  memcpy(&p, &bits, sizeof p);
  return static_cast<std::int64_t>(p);
}

}  // namespace tessera
