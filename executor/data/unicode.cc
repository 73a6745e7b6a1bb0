#include "executor/data/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Range of the second byte after a lead byte (Unicode 15, table 3-7); lo > hi for no lead byte.
struct Lead {
  int length;
  unsigned char lo, hi;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte >= 0xc2 && byte <= 0xdf) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 1, 0};
}

void append_utf8(std::string& out, std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

}  // namespace

int code_point_length(std::string_view text, std::size_t at, int& bad) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  bad = 1;
  if (lead.length <= 1) return lead.length;
  for (int i = 1; i < lead.length; ++i) {
    if (at + static_cast<std::size_t>(i) >= text.size()) return 0;
    const auto byte = static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
    const bool fits = i == 1 ? byte >= lead.lo && byte <= lead.hi : (byte & 0xc0) == 0x80;
    if (!fits) return 0;
    bad = i + 1;
  }
  return lead.length;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    int bad = 0;
    const int length = code_point_length(text, at, bad);
    out += length > 0 ? text.substr(at, static_cast<std::size_t>(length)) : kReplacement;
    at += static_cast<std::size_t>(length > 0 ? length : bad);
  }
  return out;
}

std::size_t complete_prefix(std::string_view text) {
  const std::size_t start = text.size() > 3 ? text.size() - 3 : 0;
  for (std::size_t at = text.size(); at-- > start;) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte & 0xc0) == 0x80) continue;
    int bad = 0;
    const bool cut = code_point_length(text, at, bad) == 0 && lead_of(byte).length > 1 &&
                     at + static_cast<std::size_t>(bad) == text.size();
    return cut ? at : text.size();
  }
  return text.size();
}

std::string nfc(std::string_view text) {
  const bool ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  TESSERA_CHECK(length >= 0);
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
  std::free(mapped);
  return out;
}

const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> result;
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      append_utf8(result[byte], printable ? byte : next++);
    }
    return result;
  }();
  return alphabet;
}

bool bytes_of(std::string_view token, std::string& bytes) {
  static const std::unordered_map<std::string, char> byte_of = [] {
    std::unordered_map<std::string, char> result;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      result[byte_alphabet()[byte]] = static_cast<char>(byte);
    }
    return result;
  }();
  bytes.clear();
  for (std::size_t at = 0; at < token.size();) {
    int bad = 0;
    const int length = code_point_length(token, at, bad);
    if (length == 0) return false;
    const auto found =
        byte_of.find(std::string(token.substr(at, static_cast<std::size_t>(length))));
    if (found == byte_of.end()) return false;
    bytes += found->second;
    at += static_cast<std::size_t>(length);
  }
  return true;
}

}  // namespace tessera
