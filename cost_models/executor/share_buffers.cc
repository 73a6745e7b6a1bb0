#include "cost_models/executor/share_buffers.h"

#include <algorithm>

namespace tessera {
namespace {

// Elements of others' gradients that wait for their sum (ShardReducer::kStagedElements).
constexpr std::int64_t kStagedElements = std::int64_t{192} << 20;
constexpr std::int64_t kGatheredLayers = 3, kReducedLayers = 2;

}  // namespace

MemoryUse share_buffers(const SharedStage& stage, const RoleDTypes& dtypes, bool trained) {
  MemoryUse use;
  if (!trained || stage.ranks <= 1 || stage.zero == 0) return use;
  std::int64_t whole = stage.all;
  if (stage.zero >= 2) {
    const std::int64_t turns = std::min(kReducedLayers, stage.layers);
    whole = turns * stage.layer + stage.outside;
    use.gradients = Bytes{whole * size_of(dtypes.grad)};
  }
  if (stage.zero < 3) {
    use.weights = Bytes{(stage.all + stage.ranks - 1) / stage.ranks * size_of(dtypes.param)};
  }
  // Where gradients leave the device nobody reads them there: these go with them.
  const std::int64_t others = stage.ranks - 1;
  use.gradients += Bytes{std::min(kStagedElements, others * whole) * size_of(dtypes.grad)};
  return use;
}

Bytes gathered_bytes(const SharedStage& stage, const RoleDTypes& dtypes, bool kept) {
  if (stage.zero < 3 || stage.ranks <= 1) return {};
  const std::int64_t layers = kept ? stage.layers + 1 : std::min(kGatheredLayers, stage.layers);
  return Bytes{(layers * stage.layer + stage.outside) * size_of(dtypes.param)};
}

}  // namespace tessera
