// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/threads/vector_registers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::gui {

#if defined(__x86_64__)
namespace {

__attribute__((target("avx"))) void clear() { _mm256_zeroupper(); }

}  // namespace

void clear_upper_vectors() {
  if (__builtin_cpu_supports("avx")) clear();
}
#else
void clear_upper_vectors() {}
#endif

}  // namespace tessera::gui
