// SPDX-License-Identifier: GPL-3.0-or-later
// Work in the background is not slowed by what was left in its thread's vector registers.
#include <gtest/gtest.h>

#include <QThreadPool>
#include <cstdint>

#include "gui/threads/outcome.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

namespace tessera::gui {
namespace {

constexpr std::uint64_t kUpperHalves = 1 << 2;  // of the state components in use

// XGETBV of 1, which says what parts of the registers are in use, is there.
bool tells_use() {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid_count(0xd, 1, &a, &b, &c, &d) != 0 &&
         (a >> 2 & 1) != 0;
}

__attribute__((target("xsave"))) bool upper_in_use() { return (_xgetbv(1) & kUpperHalves) != 0; }

void fill_upper() { asm volatile("vcmptrueps %%ymm0, %%ymm0, %%ymm0" ::: "xmm0"); }

TEST(VectorRegisters, WorkBeginsWithClearUpperHalves) {
  if (!tells_use()) GTEST_SKIP() << "this processor does not say what is in use";
  QThreadPool pool;
  pool.setMaxThreadCount(1);
  QObject context;
  const auto unheard = [](const Outcome<bool>&) {};
  bool filled = false, left = true;
  const auto fill = [&] {
    fill_upper();
    return filled = upper_in_use();
  };
  run_in(pool, context, fill, unheard);
  run_in(
      pool, context, [&] { return left = upper_in_use(); }, unheard);
  pool.waitForDone();
  EXPECT_TRUE(filled);
  EXPECT_FALSE(left);
}

}  // namespace
}  // namespace tessera::gui
#endif
