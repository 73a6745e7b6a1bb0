// Whether a run can be repeated bit for bit on GPUs.
#pragma once

namespace tessera::fused {

/// True: backward passes give the same bits in every run (attention adds up in a fixed order, for
/// some of its speed). Process-wide; false at the start.
void set_deterministic(bool on);

}  // namespace tessera::fused
