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

}  // namespace tessera
