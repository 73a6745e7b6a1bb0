// Bytes of this process' CPU tensors, counted from the first time that anybody asks.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/memory/counting_allocator.h"
#include "executor/model/decoder.h"

namespace tessera::testing {

inline CountedTensors& counted() {
  static const auto tensors = [] {
    auto all = std::make_shared<CountedTensors>();
    install_counting_allocator(all, [](std::int64_t) {});
    return all;
  }();
  return *tensors;
}

/// Bytes that the forward pass of a text of so many tokens leaves behind for its backward pass.
inline double left_by_forward(const Weights& weights, const ParallelGroups& groups,
                              std::int64_t text_tokens, Recompute recompute) {
  const std::vector<std::vector<std::int64_t>> text{
      std::vector<std::int64_t>(static_cast<std::size_t>(text_tokens), 3)};
  const PackedTokens tokens = pack_tokens(text, torch::kCPU);
  StageOptions options;
  options.recompute = recompute;
  const std::int64_t before = counted().bytes;
  const torch::Tensor hidden = stage_forward(weights, groups, tokens, {}, options);
  return static_cast<double>(counted().bytes - before);
}

}  // namespace tessera::testing
