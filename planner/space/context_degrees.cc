#include "planner/space/context_degrees.h"

#include <algorithm>
#include <vector>

#include "planner/request/request.h"
#include "planner/space/divisors.h"

namespace tessera {
namespace {

// Shorter parts of a sequence are seldom worth a rank of their own.
constexpr std::int64_t kLeastContext = 2048;
// GPUs of blocks on which factors other than two are tried.
constexpr int kOddFactors = 64;

bool power_of_two(std::int64_t number) { return (number & (number - 1)) == 0; }

// Data parallelism could have a factor of cp more: its ranks would deal the batch in equal parts.
bool replicas_can_be_more(const ContextSplit& split) {
  const std::vector<int> factors = divisors(split.cp);
  return std::any_of(factors.begin() + 1, factors.end(), [&](int factor) {
    return split.batch % (std::int64_t{split.dp} * factor) == 0;
  });
}

}  // namespace

bool tries_context(const Workload& workload, std::int64_t cp) {
  return power_of_two(cp) && (cp == 1 || longest_sequence(workload) / cp >= kLeastContext);
}

bool tries_split(const Workload& workload, const ContextSplit& split) {
  if (split.alone || tries_context(workload, split.cp)) return true;
  const bool doubled = power_of_two(split.cp);
  if (!doubled && split.gpus > kOddFactors) return false;
  const std::int64_t ranks = split.gpus / split.tp / (split.cp / 2);
  return (doubled && split.batch * split.deepest < ranks) || !replicas_can_be_more(split);
}

}  // namespace tessera
