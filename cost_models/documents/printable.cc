#include "cost_models/documents/printable.h"

#include <cstdint>
#include <cstdio>

namespace tessera {
namespace {

/// The code point of a well-formed sequence of `length` bytes at `offset`.
std::uint32_t code_point(std::string_view text, std::size_t offset, std::size_t length) {
  const auto first = static_cast<unsigned char>(text[offset]);
  if (length == 1) return first;
  std::uint32_t point = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    point = (point << 6) | (static_cast<unsigned char>(text[offset + i]) & 0x3Fu);
  }
  return point;
}

/// Controls that a terminal or a bidirectional display acts upon.
bool is_control(std::uint32_t point) {
  const bool c0 = point < 0x20 && point != '\t', c1 = point >= 0x7F && point < 0xA0;
  const bool bidirectional =
      (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  return c0 || c1 || bidirectional;
}

std::string escaped(std::uint32_t point) {
  if (point == '\n') return "\\n";
  if (point == '\r') return "\\r";
  char text[16];
  std::snprintf(text, sizeof text, point < 0x100 ? "\\x%02x" : "\\u%04x", point);
  return text;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) {
    return offset + i < text.size() ? static_cast<unsigned char>(text[offset + i]) : 0u;
  };
  const auto in = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (in(first, 0xC2, 0xDF)) return in(byte(1), 0x80, 0xBF) ? 2 : 0;
  if (in(first, 0xE0, 0xEF)) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) ? 3 : 0;
  }
  if (in(first, 0xF0, 0xF4)) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) && in(byte(3), 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text, LineEnds line_ends) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      shown += escaped(static_cast<unsigned char>(text[i++]));
      continue;
    }
    const std::uint32_t point = code_point(text, i, length);
    const bool kept = line_ends == LineEnds::kept && point == '\n';
    if (is_control(point) && !kept) {
      shown += escaped(point);
    } else {
      shown += text.substr(i, length);
    }
    i += length;
  }
  return shown;
}

std::size_t find_control_character(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    const std::uint32_t point = code_point(text, i, length);
    if (is_control(point) && point != '\n') return i;
    i += length;
  }
  return std::string_view::npos;
}

bool has_control_characters(std::string_view text) {
  return find_control_character(text) != std::string_view::npos;
}

}  // namespace tessera
