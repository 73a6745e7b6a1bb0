#include "executor/reshard/gpu_site.h"

#include <utility>

#include "executor/storage/stream_barrier.h"

namespace tessera {

namespace {

WindowMemory window_of(const SharedBlock& block) {
  return {block.data(), static_cast<std::size_t>(block.bytes())};
}

}  // namespace

void complete_on_gpu(ReshardSite& site, int device) {
  site.make_block = [device](std::int64_t bytes) { return make_device_block(bytes, device); };
  site.make_barrier = [host = site.host, device] { return make_stream_barrier(*host, device); };
  site.register_memory = [world = site.world](const SharedBlock& memory) {
    return register_memory(*world, window_of(memory));
  };
}

void gather_through_windows(ReshardSite& site, std::vector<WindowMemory> windows) {
  site.split = [world = site.world, windows = std::move(windows)](std::span<const int> members,
                                                                  const SharedBlock* stage) {
    std::vector<WindowMemory> all = windows;
    if (stage != nullptr) all.push_back(window_of(*stage));
    return split_with_windows(*world, members, CtaPolicy::zero, all);
  };
}

}  // namespace tessera
