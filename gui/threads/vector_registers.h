// SPDX-License-Identifier: GPL-3.0-or-later
// The vector registers that a thread works with.
//
// A new thread begins with the registers of the one that started it, and the window's often leaves
// something in their upper halves. x86 processors then carry these through every SSE instruction,
// and a search takes about three times as long. They do so until an instruction clears the halves,
// which the routines of a C library for AVX-512 never do. Any thread.
#pragma once

namespace tessera::gui {

/// Clears the upper halves of this thread's vector registers, where the processor has any. The
/// caller keeps nothing in them, as at every call of a function.
void clear_upper_vectors();

}  // namespace tessera::gui
