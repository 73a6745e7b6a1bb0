// Which of PyTorch's two FSDPs wraps a role's modules.
//
// A plain value and its names.
#pragma once

#include <array>
#include <string_view>

#include "cost_models/spec/enum_names.h"

namespace tessera {

enum class Fsdp {
  fsdp2,  // fully_shard: embedding and head are groups of their own, and are cut again
  /// FullyShardedDataParallel: what is in no layer is the root, which stays gathered from its
  /// forward pass until its backward pass ends.
  fsdp1,
};
inline constexpr std::array kFsdps{Fsdp::fsdp1, Fsdp::fsdp2};
inline constexpr auto kFsdpNames =
    enum_names<Fsdp>({{Fsdp::fsdp2, "fsdp2"}, {Fsdp::fsdp1, "fsdp1"}});

constexpr std::string_view name_of(Fsdp fsdp) { return kFsdpNames[fsdp]; }

}  // namespace tessera
