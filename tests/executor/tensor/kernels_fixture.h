// The fixture of the CUDA kernels' tests: skips where there is no GPU, or were built no kernels.
#pragma once

#include "executor/tensor/torch.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <cmath>

#include "executor/tensor/fused.h"

namespace tessera::testing {
using torch::Tensor;

inline double error_of(const Tensor& got, const Tensor& want) {
  const Tensor a = got.to(torch::kCPU, torch::kFloat64), b = want.to(torch::kCPU, torch::kFloat64);
  if (!a.isfinite().all().item<bool>()) return INFINITY;
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-12);
}

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU on this machine";
    if (!fused::usable(torch::zeros({1}, torch::kCUDA))) GTEST_SKIP() << "built without kernels";
    torch::manual_seed(3);
  }
  void TearDown() override { fused::enable(true); }
};

}  // namespace tessera::testing
