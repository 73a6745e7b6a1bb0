// What quantities with a unit compute, and what does not compile.
#include "cost_models/spec/units.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tessera {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept Subtractable = requires(A a, B b) { a - b; };
template <class A, class B>
concept Accumulable = requires(A& a, B b) { a += b; };
template <class A, class K>
concept Scalable = requires(A& a, K k) { a *= k, a /= k; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a < b; };
template <class A, class B>
concept Equatable = requires(A a, B b) { a == b; };

// A raw number is no quantity by itself, nor is another unit.
static_assert(!std::is_convertible_v<double, Seconds> && std::is_constructible_v<Seconds, double>);
static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
static_assert(!std::is_convertible_v<double, Traffic>);
static_assert(!std::is_convertible_v<Seconds, Traffic> && !std::is_convertible_v<Bytes, Seconds>);
static_assert(!std::is_assignable_v<Seconds&, double> && !std::is_assignable_v<Bytes&, Seconds>);
static_assert(std::is_convertible_v<Seconds, double> && !std::is_convertible_v<Seconds, int>);
static_assert(std::is_convertible_v<Bytes, std::int64_t> && !std::is_convertible_v<Bytes, double>);
static_assert(std::is_convertible_v<Bytes, Traffic> && !std::is_convertible_v<Traffic, Bytes>);

// Sums and comparisons stay within a unit.
static_assert(Addable<Seconds, Seconds> && !Addable<Seconds, Bytes> && !Addable<Bytes, Seconds>);
static_assert(!Addable<Seconds, double> && !Addable<double, Seconds> && !Addable<Bytes, int>);
static_assert(Subtractable<Bytes, Bytes> && !Subtractable<Bytes, Seconds>);
static_assert(!Subtractable<Seconds, double> && !Subtractable<double, Seconds>);
static_assert(Accumulable<Seconds, Seconds> && !Accumulable<Seconds, Bytes>);
static_assert(!Accumulable<Seconds, double> && !Accumulable<Bytes, std::int64_t>);
static_assert(Scalable<Seconds, int> && Scalable<Seconds, double> && Scalable<Bytes, int>);
static_assert(!Scalable<Bytes, double> && !Scalable<Seconds, Seconds>);
static_assert(Comparable<Seconds, Seconds> && !Comparable<Seconds, Bytes>);
static_assert(!Comparable<BytesPerSecond, FlopsPerSecond>);
static_assert(Equatable<Bytes, Bytes> && !Equatable<Bytes, Seconds>);

// Products and quotients have the unit that they should.
static_assert(std::same_as<decltype(Seconds{} * 2), Seconds>);
static_assert(std::same_as<decltype(2.0 * Seconds{}), Seconds>);
static_assert(std::same_as<decltype(Seconds{} / Seconds{}), double>);
static_assert(std::same_as<decltype(Bytes{} * 3), Bytes>);
static_assert(std::same_as<decltype(Bytes{} * 0.5), Traffic>);
static_assert(std::same_as<decltype(Bytes{} / 3), Bytes>);
static_assert(std::same_as<decltype(Bytes{} + Traffic{}), Traffic>);
static_assert(std::same_as<decltype(Traffic{} / BytesPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(Traffic{} / Seconds{}), BytesPerSecond>);
static_assert(std::same_as<decltype(Flops{} / FlopsPerSecond{}), Seconds>);

// A quantity costs what its number costs.
static_assert(sizeof(Seconds) == sizeof(double) && sizeof(Bytes) == sizeof(std::int64_t));
static_assert(std::is_trivially_copyable_v<Seconds> && std::is_trivially_destructible_v<Seconds>);

TEST(Units, ComputeAsTheirRawNumbers) {
  constexpr double kThird = 1.0 / 3, kTenth = 0.1;
  Seconds sum = Seconds{kThird} + Seconds{kTenth};
  EXPECT_EQ(sum.value, kThird + kTenth);
  sum += Seconds{kTenth};
  EXPECT_EQ(sum.value, kThird + kTenth + kTenth);
  EXPECT_EQ((7 * Seconds{kThird}).value, 7 * kThird);
  EXPECT_EQ((Seconds{kThird} / 7).value, kThird / 7);
  EXPECT_EQ(Seconds{kThird} / Seconds{kTenth}, kThird / kTenth);
  EXPECT_EQ((Bytes{std::int64_t{1} << 40} * 3).value, std::int64_t{3} << 40);
  EXPECT_EQ((Bytes{7} / 2).value, 3);
  EXPECT_EQ((Bytes{7} * 0.5).value, 3.5);
  EXPECT_EQ((Bytes{7} / BytesPerSecond{kThird}).value, 7 / kThird);
}

TEST(Units, GoOutAsRawNumbersAndCompareWithThem) {
  const double out = Seconds{0.25};
  EXPECT_EQ(out, 0.25);
  const std::int64_t count = Bytes{9};
  EXPECT_EQ(count, 9);
  EXPECT_LT(Seconds{1}, Seconds{2});
  EXPECT_TRUE(Seconds{1} > 0);
  EXPECT_EQ((-Seconds{2}).value, -2);
  EXPECT_EQ(gib(from_gib(1.5)), 1.5);
}

}  // namespace
}  // namespace tessera
