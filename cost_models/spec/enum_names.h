// The names of an enum's enumerators, as files and messages spell them.
//
// A table of pairs that the compiler counts: an enumerator without a name, or a name out of its
// place, does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// True where `Value` is one of its enum's enumerators. The compiler prints any other value of the
/// enum as a cast number: "(tessera::Phase)11".
template <auto Value>
consteval bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const char after = text[text.rfind(')') + 1];
  return after < '0' || after > '9';
}

/// True where `Count` enumerators count up from 0 and there are no more.
template <class Enum, std::size_t Count>
consteval bool has_enumerators() {
  return is_enumerator<static_cast<Enum>(Count - 1)>() &&
         !is_enumerator<static_cast<Enum>(Count)>();
}

template <class Enum, std::size_t Count>
struct EnumNames {
  std::array<std::pair<Enum, std::string_view>, Count> pairs;  // in the order of the enumerators

  constexpr std::string_view operator[](Enum value) const {
    return pairs[static_cast<std::size_t>(value)].second;
  }
  constexpr std::optional<Enum> find(std::string_view name) const {
    for (const auto& [value, own] : pairs) {
      if (own == name) return value;
    }
    return std::nullopt;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [value, name] : pairs) all.emplace_back(name);
    return all;
  }
};

/// `pairs`: every enumerator once, in their order.
template <class Enum, std::size_t Count>
consteval EnumNames<Enum, Count> enum_names(
    const std::pair<Enum, std::string_view> (&pairs)[Count]) {
  static_assert(has_enumerators<Enum, Count>(), "an enumerator has no name");
  EnumNames<Enum, Count> names{std::to_array(pairs)};
  for (std::size_t i = 0; i < Count; ++i) {
    if (names.pairs[i].first != static_cast<Enum>(i))
      throw "a name is not in its enumerator's place";
  }
  return names;
}

}  // namespace tessera
