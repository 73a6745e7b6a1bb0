// One value for each enumerator of an enum, found by the enumerator and by nothing else.
//
// A plain value over std::array: it copies, compares and iterates like one. Arrays over different
// enums are different types, so that what is counted by one cannot be added to what is counted by
// another.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace tessera {

/// How many enumerators `Enum` has; they count up from 0. An enum that indexes arrays specialises
/// it where it is declared.
template <class Enum>
inline constexpr std::size_t kEnumerators = 0;

template <class Enum, class Value>
struct EnumArray {
  static_assert(kEnumerators<Enum> > 0, "specialise kEnumerators beside the enum");

  std::array<Value, kEnumerators<Enum>> values{};  // in the order of the enumerators

  constexpr Value& operator[](Enum index) { return values[static_cast<std::size_t>(index)]; }
  constexpr const Value& operator[](Enum index) const {
    return values[static_cast<std::size_t>(index)];
  }

  constexpr auto begin() { return values.begin(); }
  constexpr auto end() { return values.end(); }
  constexpr auto begin() const { return values.begin(); }
  constexpr auto end() const { return values.end(); }
  static constexpr std::size_t size() { return kEnumerators<Enum>; }
  constexpr void fill(const Value& value) { values.fill(value); }

  constexpr EnumArray& operator+=(const EnumArray& other) {
    for (std::size_t i = 0; i < size(); ++i) values[i] += other.values[i];
    return *this;
  }
  constexpr EnumArray& operator-=(const EnumArray& other) {
    for (std::size_t i = 0; i < size(); ++i) values[i] -= other.values[i];
    return *this;
  }
  bool operator==(const EnumArray&) const = default;
};

/// Lowers every value of `least` to that of `other` where that one is less.
template <class Enum, class Value>
constexpr void lower(EnumArray<Enum, Value>& least, const EnumArray<Enum, Value>& other) {
  for (std::size_t i = 0; i < least.size(); ++i) {
    least.values[i] = std::min(least.values[i], other.values[i]);
  }
}

}  // namespace tessera
