#include "simulator/timeline/metric_scan.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "simulator/timeline/comparison.h"

namespace tessera {
namespace {

// Far below what the parser of all lines takes, in bytes and so in names.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::ptrdiff_t kMostDigits = 18;  // of an integer that surely has 64 bits

/// Goes through a text; each function passes over blanks first.
struct Cursor {
  const char* at;
  const char* end;

  void skip_blanks() {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
  }
  bool take(char c) {
    skip_blanks();
    if (at == end || *at != c) return false;
    ++at;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(word)) return false;
    at += word.size();
    return true;
  }
  /// A string's text.
  bool take_name(std::string_view& name) {
    if (!take('"')) return false;
    const char* const begin = at;
    while (at < end && *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\') ++at;
    name = {begin, static_cast<std::size_t>(at - begin)};
    if (at == end || *at != '"') return false;
    ++at;
    return true;
  }
  /// How many there are.
  std::ptrdiff_t take_digits() {
    const char* const begin = at;
    while (at < end && *at >= '0' && *at <= '9') ++at;
    return at - begin;
  }
  bool take_integer(std::int64_t& value) {
    skip_blanks();
    const char* const begin = at;
    if (at < end && *at == '-') ++at;
    const char* const first = at;
    const std::ptrdiff_t digits = take_digits();
    if (digits == 0 || digits > kMostDigits || (*first == '0' && digits > 1)) return false;
    std::from_chars(begin, at, value);
    return true;
  }
  /// As JSON writes numbers.
  bool take_number(double& value) {
    std::int64_t whole = 0;
    skip_blanks();
    const char* const begin = at;
    if (!take_integer(whole)) return false;
    const char* const behind = at;
    if (at < end && *at == '.') {
      ++at;
      if (take_digits() == 0) return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
      ++at;
      if (at < end && (*at == '+' || *at == '-')) ++at;
      if (take_digits() == 0) return false;
    }
    if (at == behind) {
      value = static_cast<double>(whole);
      return true;
    }
    const auto [last, error] = std::from_chars(begin, at, value);
    return error == std::errc{} && last == at;
  }
};

bool differ(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

}  // namespace

bool MetricScanner::scan(std::string_view line) {
  if (line.size() > kMostBytes) return false;
  Cursor in{line.data(), line.data() + line.size()};
  if (!in.take('{') || !in.take_word("\"step\"") || !in.take(':') || !in.take_integer(step_) ||
      step_ < 0 || !in.take(',') || !in.take_word("\"data\"") || !in.take(':') || !in.take('{')) {
    return false;
  }
  values_.clear();
  found_.clear();
  if (!in.take('}')) {
    do {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!in.take_name(found_.emplace_back()) || !in.take(':')) return false;
      if (!in.take_word("null") && !in.take_number(value)) return false;
      values_.push_back(value);
    } while (in.take(','));
    if (!in.take('}')) return false;
  }
  if (!in.take('}')) return false;
  in.skip_blanks();
  return in.at == in.end && take_names();
}

// False where one is there twice.
bool MetricScanner::take_names() {
  if (std::equal(found_.begin(), found_.end(), names_.begin(), names_.end())) return true;
  if (!differ(found_)) return false;
  names_.assign(found_.begin(), found_.end());
  ++layout_;
  return true;
}

void MetricScanner::set(const StepNumbers& step) {
  step_ = step.step;
  names_.clear();
  values_.clear();
  for (const auto& [name, value] : step.data) {
    names_.push_back(name);
    values_.push_back(value);
  }
  ++layout_;
}

}  // namespace tessera
