#include "planner/plan/amounts.h"

#include <array>
#include <cstdio>

namespace tessera {
namespace {

std::string with_unit(double value, int decimals, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, unit);
  return text.data();
}

}  // namespace

std::string in_gib(Bytes bytes, int decimals) { return with_unit(gib(bytes), decimals, "GiB"); }

std::string in_binary_units(Bytes bytes) {
  const auto value = static_cast<double>(bytes.value);
  if (bytes >= 1LL << 30) return in_gib(bytes);
  if (bytes >= 1LL << 20) return with_unit(value / (1LL << 20), 2, "MiB");
  return with_unit(value / (1LL << 10), 1, "KiB");
}

std::string in_seconds(Seconds seconds) {
  if (seconds >= Seconds{1}) return with_unit(seconds.value, 2, "s");
  if (seconds >= Seconds{1e-3}) return with_unit(seconds.value * 1e3, 2, "ms");
  return with_unit(seconds.value * 1e6, 1, "us");
}

std::string percent(double share) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

}  // namespace tessera
