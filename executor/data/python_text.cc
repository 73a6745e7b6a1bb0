#include "executor/data/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "executor/data/unicode.h"

namespace tessera {

std::u32string code_points(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    int bad = 0;
    const int length = code_point_length(text, at, bad);
    if (length <= 0) {
      result += U'\ufffd';
      at += static_cast<std::size_t>(bad);
      continue;
    }
    const auto byte = [&](int i) {
      return static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
    };
    char32_t point = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
    for (int i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3fu);
    result += point;
    at += static_cast<std::size_t>(length);
  }
  return result;
}

std::string utf8_of(std::u32string_view text) {
  std::string result;
  for (const char32_t c : text) {
    utf8proc_uint8_t bytes[4];
    const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
    result.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
  }
  return result;
}

std::u32string replaced(std::u32string_view text, std::u32string_view from,
                        std::u32string_view to) {
  std::u32string result;
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != text.npos; found = text.find(from, at)) {
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return result.append(text.substr(at));
}

std::vector<std::u32string> split_at(std::u32string_view text, std::u32string_view separator) {
  std::vector<std::u32string> parts;
  std::size_t at = 0;
  for (std::size_t found = text.find(separator); found != text.npos;
       found = text.find(separator, at)) {
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

bool is_python_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

int decimal_value(char32_t c) {
  if (c < 128) return c >= U'0' && c <= U'9' ? static_cast<int>(c - U'0') : -1;
  // Every script has its ten digits in a row (Unicode 15, section 4.6).
  int before = -1;
  while (utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND) {
    ++before;
    --c;
  }
  return before < 0 ? -1 : before % 10;
}

bool is_python_digit(char32_t c) {
  if (decimal_value(c) >= 0) return true;
  if (c < 128) return false;
  // Numeric_Type=Digit without Decimal (DerivedNumericType.txt).
  static constexpr std::pair<char32_t, char32_t> kDigits[] = {
      {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
      {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
      {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
      {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
      {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
  return std::ranges::any_of(
      kDigits, [&](const auto& range) { return c >= range.first && c <= range.second; });
}

std::u32string_view stripped(std::u32string_view text) {
  while (!text.empty() && is_python_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_space(text.back())) text.remove_suffix(1);
  return text;
}

std::u32string_view last_characters(std::u32string_view text, std::size_t count) {
  return text.size() <= count ? text : text.substr(text.size() - count);
}

}  // namespace tessera
