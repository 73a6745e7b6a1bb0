// A check of what the program itself must hold true, whatever its input.
//
// A broken one is a defect of Tessera: it ends the process at once. Any thread.
#pragma once

namespace tessera {

/// Ends the process with `what` and its place when an invariant of our own is broken.
[[noreturn]] void invariant_broken(const char* what, const char* file, int line);

}  // namespace tessera

/// For invariants that no user input can break; user input gets a Problem instead.
#define TESSERA_CHECK(condition) \
  ((condition) ? (void)0 : ::tessera::invariant_broken(#condition, __FILE__, __LINE__))
