// Quantities with a unit, so that a formula cannot mix bytes with seconds.
//
// A Quantity is one number with a tag, as large and as fast as the number. It is made from a raw
// number in so many words (`Seconds{0.5}`) and is one again wherever a raw number is asked for
// (printing, JSON, a ratio). What makes no sense does not compile: sums, differences and
// comparisons of different units, and sums of a quantity and a raw number. Arithmetic is that of
// the raw numbers, in the order in which it is written. JSON and CSV carry the unit in the key
// (`step_s`, `peak_gib`).
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera {

template <class T>
concept RawNumber = std::integral<T> || std::floating_point<T>;

template <class Unit, RawNumber Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep raw) : value(raw) {}
  /// Whole units where a fraction may stand: Bytes as Traffic.
  template <std::integral Whole>
    requires std::floating_point<Rep>
  constexpr Quantity(Quantity<Unit, Whole> whole) : value(static_cast<Rep>(whole.value)) {}
  /// The raw number, of its own type alone: seconds become no integer, bytes no double.
  template <std::same_as<Rep> Raw>
  constexpr operator Raw() const {
    return value;
  }

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr bool operator==(const Quantity&, const Quantity&) = default;
  /// With a raw number, mostly zero, as that number's type compares.
  template <RawNumber K>
  friend constexpr auto operator<=>(Quantity a, K k) {
    return a.value <=> k;
  }
  template <RawNumber K>
  friend constexpr bool operator==(Quantity a, K k) {
    return a.value == k;
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value); }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  constexpr Quantity& operator+=(Quantity b) { return value += b.value, *this; }
  constexpr Quantity& operator-=(Quantity b) { return value -= b.value, *this; }
  /// By a whole number or, where fractions stand, by any.
  template <RawNumber K>
    requires(std::floating_point<Rep> || std::integral<K>)
  constexpr Quantity& operator*=(K k) {
    return value *= static_cast<Rep>(k), *this;
  }
  template <RawNumber K>
    requires(std::floating_point<Rep> || std::integral<K>)
  constexpr Quantity& operator/=(K k) {
    return value /= static_cast<Rep>(k), *this;
  }

  /// The ratio of two equal quantities has no unit.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

/// The number that a quantity of Rep times K has: whole only where both are.
template <RawNumber Rep, RawNumber K>
using Scaled = std::conditional_t<std::floating_point<K>, double, Rep>;

template <class Unit, RawNumber Rep, RawNumber K>
constexpr auto operator*(Quantity<Unit, Rep> a, K k) {
  using Result = Scaled<Rep, K>;
  return Quantity<Unit, Result>(static_cast<Result>(a.value) * static_cast<Result>(k));
}
template <RawNumber K, class Unit, RawNumber Rep>
constexpr auto operator*(K k, Quantity<Unit, Rep> a) {
  using Result = Scaled<Rep, K>;
  return Quantity<Unit, Result>(static_cast<Result>(k) * static_cast<Result>(a.value));
}
/// Whole by whole rounds towards zero, as the raw numbers do.
template <class Unit, RawNumber Rep, RawNumber K>
constexpr auto operator/(Quantity<Unit, Rep> a, K k) {
  using Result = Scaled<Rep, K>;
  return Quantity<Unit, Result>(static_cast<Result>(a.value) / static_cast<Result>(k));
}

// Raw numbers come out of a quantity unasked, so what must not compile is named.
template <class A, class RA, class B, class RB>
  requires(!std::same_as<A, B>)
void operator+(Quantity<A, RA>, Quantity<B, RB>) = delete;
template <class A, class RA, class B, class RB>
  requires(!std::same_as<A, B>)
void operator-(Quantity<A, RA>, Quantity<B, RB>) = delete;
template <class A, class RA, class B, class RB>
  requires(!std::same_as<A, B>)
bool operator==(Quantity<A, RA>, Quantity<B, RB>) = delete;
template <class A, class RA, class B, class RB>
  requires(!std::same_as<A, B>)
std::partial_ordering operator<=>(Quantity<A, RA>, Quantity<B, RB>) = delete;
template <class Unit, class Rep, RawNumber K>
void operator+(Quantity<Unit, Rep>, K) = delete;
template <class Unit, class Rep, RawNumber K>
void operator+(K, Quantity<Unit, Rep>) = delete;
template <class Unit, class Rep, RawNumber K>
void operator-(Quantity<Unit, Rep>, K) = delete;
template <class Unit, class Rep, RawNumber K>
void operator-(K, Quantity<Unit, Rep>) = delete;

struct SecondsUnit;
struct BytesUnit;
struct FlopsUnit;
struct BytesPerSecondUnit;
struct FlopsPerSecondUnit;

using Seconds = Quantity<SecondsUnit, double>;
/// Bytes that lie somewhere: a count.
using Bytes = Quantity<BytesUnit, std::int64_t>;
/// Bytes that move over a wire or through memory, as a formula gives them: with a fraction where
/// tokens are an average.
using Traffic = Quantity<BytesUnit, double>;
using Flops = Quantity<FlopsUnit, double>;
using BytesPerSecond = Quantity<BytesPerSecondUnit, double>;
using FlopsPerSecond = Quantity<FlopsPerSecondUnit, double>;

constexpr Seconds operator/(Traffic work, BytesPerSecond rate) {
  return Seconds(work.value / rate.value);
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value / rate.value);
}
constexpr Traffic operator*(Seconds time, BytesPerSecond rate) {
  return Traffic(time.value * rate.value);
}
constexpr BytesPerSecond operator/(Traffic work, Seconds time) {
  return BytesPerSecond(work.value / time.value);
}

/// Of a step that no plan takes.
inline constexpr Seconds kForever(std::numeric_limits<double>::infinity());

constexpr double gib(Bytes bytes) { return static_cast<double>(bytes.value) / (1LL << 30); }
constexpr double gigabytes(Bytes bytes) { return static_cast<double>(bytes.value) * 1e-9; }
constexpr Bytes from_gib(double amount) {
  return Bytes(static_cast<std::int64_t>(amount * (1LL << 30)));
}
constexpr BytesPerSecond gb_per_s(double amount) { return BytesPerSecond(amount * 1e9); }
constexpr FlopsPerSecond tflop_per_s(double amount) { return FlopsPerSecond(amount * 1e12); }

}  // namespace tessera
