// Quantities with a unit, so that a formula cannot mix bytes with seconds.
//
// A Quantity is a double (Bytes: a 64-bit integer) with a tag; only products and quotients that
// make sense are defined. JSON and CSV carry the unit in the key (`step_s`, `peak_gib`).
#pragma once

#include <compare>
#include <cstdint>

namespace tessera {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return {a.value * k}; }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return {a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return {a.value / k}; }
  /// The ratio of two equal quantities has no unit.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
  constexpr Quantity& operator+=(Quantity b) { return value += b.value, *this; }
  constexpr Quantity& operator-=(Quantity b) { return value -= b.value, *this; }
};

using Seconds = Quantity<struct SecondsTag, double>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

constexpr Seconds operator/(Bytes work, BytesPerSecond rate) {
  return {static_cast<double>(work.value) / rate.value};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return {work.value / rate.value}; }
constexpr BytesPerSecond operator/(Bytes work, Seconds time) {
  return {static_cast<double>(work.value) / time.value};
}

constexpr double gib(Bytes bytes) { return static_cast<double>(bytes.value) / (1LL << 30); }
constexpr double gigabytes(Bytes bytes) { return static_cast<double>(bytes.value) * 1e-9; }
constexpr Bytes from_gib(double amount) {
  return {static_cast<std::int64_t>(amount * (1LL << 30))};
}
constexpr BytesPerSecond gb_per_s(double amount) { return {amount * 1e9}; }
constexpr FlopsPerSecond tflop_per_s(double amount) { return {amount * 1e12}; }

}  // namespace tessera
