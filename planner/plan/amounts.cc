#include "planner/plan/amounts.h"

#include <array>
#include <cstdio>

#include "cost_models/spec/units.h"

namespace tessera {

std::string in_gib(std::int64_t bytes, int decimals) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f GiB", decimals, gib(Bytes{bytes}));
  return text.data();
}

std::string percent(double share) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

}  // namespace tessera
