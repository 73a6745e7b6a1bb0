// Helpers of calls of the CUDA kernels on tensors: streams, types, pointers, new tensors.
#pragma once

#include "executor/tensor/torch.h"

#include <c10/cuda/CUDAStream.h>

#include "executor/kernels/kernels.h"

namespace tessera::fused {

inline void* stream_for(const torch::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

inline kernels::Real real_of(const torch::Tensor& x) {
  return x.scalar_type() == at::kFloat ? kernels::Real::fp32 : kernels::Real::bf16;
}

inline void* data_of(const torch::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

inline torch::Tensor fp32_like(const torch::Tensor& x, at::IntArrayRef shape) {
  return torch::empty(shape, x.options().dtype(at::kFloat).requires_grad(false));
}

inline torch::Tensor empty_of(const torch::Tensor& x, at::IntArrayRef shape) {
  return torch::empty(shape, x.options().requires_grad(false));
}

}  // namespace tessera::fused
