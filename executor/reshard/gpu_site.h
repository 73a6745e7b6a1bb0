// The site of a reshard on a GPU: stages in its memory, ranks that meet on their streams, and
// groups whose memory is NCCL's symmetric windows.
//
// The site's communicators and memory stay the caller's. Torch-free; needs the CUDA runtime and
// NCCL.
#pragma once

#include <vector>

#include "executor/comm/nccl_world.h"
#include "executor/transfers/reshard_site.h"

namespace tessera {

/// Fills make_block, make_barrier and register_memory. `device` is the rank's GPU; site.host is
/// set, site.world comes from make_nccl_world.
void complete_on_gpu(ReshardSite& site, int device);

/// Groups of the gathering transports register their stages, and `windows` (as
/// split_with_windows), and gather by copy engines. site.world likewise.
void gather_through_windows(ReshardSite& site, std::vector<WindowMemory> windows = {});

}  // namespace tessera
