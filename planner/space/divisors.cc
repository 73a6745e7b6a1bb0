#include "planner/space/divisors.h"

namespace tessera {

std::vector<int> divisors(int number) {
  std::vector<int> all, large;
  for (int d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    all.push_back(d);
    if (d != number / d) large.push_back(number / d);
  }
  all.insert(all.end(), large.rbegin(), large.rend());
  return all;
}

const std::vector<int>& Divisors::of(int number) {
  const auto [entry, added] = known_.try_emplace(number);
  if (added) entry->second = divisors(number);
  return entry->second;
}

}  // namespace tessera
