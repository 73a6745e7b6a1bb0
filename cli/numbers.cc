#include "cli/numbers.h"

#include <charconv>
#include <string>

namespace tessera {
namespace {

// A number that is the whole of `text`.
template <class Number>
bool read(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && at == end;
}

std::string refusal(const std::string& found, const std::string& expected) {
  return "found '" + found + "', expected " + expected;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    if (read(text, number) && number >= least && number <= most) return {};
    return refusal(text,
                   "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  };
  return {[check](std::string& text) { return check(text); }, ""};
}

CLI::Validator memory_in_gib() {
  constexpr double kMost = 1 << 20;
  const auto check = [](const std::string& text) -> std::string {
    double number = 0;
    if (read(text, number) && number > 0 && number <= kMost) return {};  // NaN compares false
    return refusal(text, "a number above 0, at most " + std::to_string(1 << 20));
  };
  return {[check](std::string& text) { return check(text); }, ""};
}

}  // namespace tessera
