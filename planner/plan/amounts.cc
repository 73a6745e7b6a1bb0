#include "planner/plan/amounts.h"

#include <array>
#include <cstdio>

namespace tessera {

std::string in_gib(Bytes bytes, int decimals) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f GiB", decimals, gib(bytes));
  return text.data();
}

std::string percent(double share) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

}  // namespace tessera
