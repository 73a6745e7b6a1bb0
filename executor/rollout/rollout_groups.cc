#include "executor/rollout/rollout_groups.h"

#include <utility>

#include "executor/storage/peer_sums.h"

namespace tessera {

ParallelGroups make_rollout_groups(Communicator& world, Communicator& host, const RankMap& map,
                                   torch::Device device, void* stream,
                                   const GroupDecorator& decorate) {
  if (!device.is_cuda()) return make_groups(world, map, decorate);
  const std::unique_ptr<Communicator> beside = make_axis_group(host, map, Axis::tp);
  return make_groups(world, map, [&](std::unique_ptr<Communicator> group, const std::string& axis) {
    if (axis == "tp" && beside != nullptr) {
      group = with_peer_sums(std::move(group), *beside, device.index(), stream);
    }
    return decorate ? decorate(std::move(group), axis) : std::move(group);
  });
}

}  // namespace tessera
