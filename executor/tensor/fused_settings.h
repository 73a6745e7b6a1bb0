// Settings of the fused operators for the whole process: whether they are used, and repeat bits.
#pragma once

namespace tessera::fused {

/// True: backward passes give the same bits in every run (attention adds up in a fixed order, for
/// some of its speed). Process-wide; false at the start.
void set_deterministic(bool on);
bool deterministic();

/// As enable() (fused.h) has it; true at the start.
bool enabled();

}  // namespace tessera::fused
