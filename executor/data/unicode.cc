#include "executor/data/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
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

/// Characters `first` to `last`, and one of the same general category and length in UTF-8 (of Han,
/// too, where they are), which older tables have.
struct StandIn {
  char32_t first, last, older;
};
/// Assigned in Unicode 15 to 16, by the tables of `tokenizers` 0.23 (its Oniguruma), and one whose
/// category has changed.
constexpr StandIn kStandIns[] = {
    {0x897, 0x897, 0x816},       {0xcf3, 0xcf3, 0x903},       {0xece, 0xece, 0x816},
    {0x1b4e, 0x1b4f, 0x830},     {0x1b7f, 0x1b7f, 0x830},     {0x1c89, 0x1c89, 0x10a0},
    {0x1c8a, 0x1c8a, 0x10d0},    {0x2427, 0x2429, 0x9fa},     {0x2ffc, 0x2fff, 0x9fa},
    {0x31e4, 0x31e5, 0x9fa},     {0x31ef, 0x31ef, 0x9fa},     {0xa7cb, 0xa7cc, 0x10a0},
    {0xa7cd, 0xa7cd, 0x10d0},    {0xa7da, 0xa7da, 0x10a0},    {0xa7db, 0xa7db, 0x10d0},
    {0xa7dc, 0xa7dc, 0x10a0},    {0x105c0, 0x105f3, 0x10000}, {0x10d40, 0x10d49, 0x104a0},
    {0x10d4a, 0x10d4d, 0x10000}, {0x10d4e, 0x10d4e, 0x10780}, {0x10d4f, 0x10d4f, 0x10000},
    {0x10d50, 0x10d65, 0x10400}, {0x10d69, 0x10d6d, 0x101fd}, {0x10d6e, 0x10d6e, 0x10ead},
    {0x10d6f, 0x10d6f, 0x10780}, {0x10d70, 0x10d85, 0x10428}, {0x10d8e, 0x10d8f, 0x1d6c1},
    {0x10ec2, 0x10ec4, 0x10000}, {0x10efc, 0x10eff, 0x101fd}, {0x1123f, 0x11240, 0x10000},
    {0x11241, 0x11241, 0x101fd}, {0x11380, 0x11389, 0x10000}, {0x1138b, 0x1138b, 0x10000},
    {0x1138e, 0x1138e, 0x10000}, {0x11390, 0x113b5, 0x10000}, {0x113b7, 0x113b7, 0x10000},
    {0x113b8, 0x113ba, 0x11000}, {0x113bb, 0x113c0, 0x101fd}, {0x113c2, 0x113c2, 0x11000},
    {0x113c5, 0x113c5, 0x11000}, {0x113c7, 0x113ca, 0x11000}, {0x113cc, 0x113cd, 0x11000},
    {0x113ce, 0x113ce, 0x101fd}, {0x113cf, 0x113cf, 0x11000}, {0x113d0, 0x113d0, 0x101fd},
    {0x113d1, 0x113d1, 0x10000}, {0x113d2, 0x113d2, 0x101fd}, {0x113d3, 0x113d3, 0x10000},
    {0x113d4, 0x113d5, 0x10100}, {0x113d7, 0x113d8, 0x10100}, {0x113e1, 0x113e2, 0x101fd},
    {0x116d0, 0x116e3, 0x104a0}, {0x1171e, 0x1171e, 0x11000}, {0x11b00, 0x11b09, 0x10100},
    {0x11bc0, 0x11be0, 0x10000}, {0x11be1, 0x11be1, 0x10100}, {0x11bf0, 0x11bf9, 0x104a0},
    {0x11f00, 0x11f01, 0x101fd}, {0x11f02, 0x11f02, 0x10000}, {0x11f03, 0x11f03, 0x11000},
    {0x11f04, 0x11f10, 0x10000}, {0x11f12, 0x11f33, 0x10000}, {0x11f34, 0x11f35, 0x11000},
    {0x11f36, 0x11f3a, 0x101fd}, {0x11f3e, 0x11f3f, 0x11000}, {0x11f40, 0x11f40, 0x101fd},
    {0x11f41, 0x11f41, 0x11000}, {0x11f42, 0x11f42, 0x101fd}, {0x11f43, 0x11f4f, 0x10100},
    {0x11f50, 0x11f59, 0x104a0}, {0x11f5a, 0x11f5a, 0x101fd}, {0x1342f, 0x1342f, 0x10000},
    {0x13439, 0x1343f, 0x110bd}, {0x13440, 0x13440, 0x101fd}, {0x13441, 0x13446, 0x10000},
    {0x13447, 0x13455, 0x101fd}, {0x13460, 0x143fa, 0x10000}, {0x16100, 0x1611d, 0x10000},
    {0x1611e, 0x16129, 0x101fd}, {0x1612a, 0x1612c, 0x11000}, {0x1612d, 0x1612f, 0x101fd},
    {0x16130, 0x16139, 0x104a0}, {0x16d40, 0x16d42, 0x10780}, {0x16d43, 0x16d6a, 0x10000},
    {0x16d6b, 0x16d6c, 0x10780}, {0x16d6d, 0x16d6f, 0x10100}, {0x16d70, 0x16d79, 0x104a0},
    {0x18cff, 0x18cff, 0x10000}, {0x1b132, 0x1b132, 0x10000}, {0x1b155, 0x1b155, 0x10000},
    {0x1cc00, 0x1ccef, 0x10137}, {0x1ccf0, 0x1ccf9, 0x104a0}, {0x1cd00, 0x1ceb3, 0x10137},
    {0x1d2c0, 0x1d2d3, 0x10107}, {0x1df25, 0x1df2a, 0x10428}, {0x1e030, 0x1e06d, 0x10780},
    {0x1e08f, 0x1e08f, 0x101fd}, {0x1e4d0, 0x1e4ea, 0x10000}, {0x1e4eb, 0x1e4eb, 0x10780},
    {0x1e4ec, 0x1e4ef, 0x101fd}, {0x1e4f0, 0x1e4f9, 0x104a0}, {0x1e5d0, 0x1e5ed, 0x10000},
    {0x1e5ee, 0x1e5ef, 0x101fd}, {0x1e5f0, 0x1e5f0, 0x10000}, {0x1e5f1, 0x1e5fa, 0x104a0},
    {0x1e5ff, 0x1e5ff, 0x10100}, {0x1f6dc, 0x1f6dc, 0x10137}, {0x1f774, 0x1f776, 0x10137},
    {0x1f77b, 0x1f77f, 0x10137}, {0x1f7d9, 0x1f7d9, 0x10137}, {0x1f8b2, 0x1f8bb, 0x10137},
    {0x1f8c0, 0x1f8c1, 0x10137}, {0x1fa75, 0x1fa77, 0x10137}, {0x1fa87, 0x1fa89, 0x10137},
    {0x1fa8f, 0x1fa8f, 0x10137}, {0x1faad, 0x1faaf, 0x10137}, {0x1fabb, 0x1fabf, 0x10137},
    {0x1fac6, 0x1fac6, 0x10137}, {0x1face, 0x1facf, 0x10137}, {0x1fada, 0x1fadc, 0x10137},
    {0x1fadf, 0x1fadf, 0x10137}, {0x1fae8, 0x1fae9, 0x10137}, {0x1faf7, 0x1faf8, 0x10137},
    {0x1fbcb, 0x1fbef, 0x10137}, {0x2b739, 0x2b739, 0x20000}, {0x2ebf0, 0x2ee5d, 0x20000},
    {0x31350, 0x323af, 0x20000}};

/// nullptr where the code point stands for itself.
const StandIn* stand_in_of(char32_t code) {
  const auto* const found = std::ranges::lower_bound(kStandIns, code, {}, &StandIn::last);
  return found != std::end(kStandIns) && found->first <= code ? found : nullptr;
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

std::optional<std::string> in_older_characters(std::string_view text) {
  std::optional<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (length < 3) {  // none of them is new
      at += length;
      continue;
    }
    char32_t code = byte & (length == 3 ? 0x0f : 0x07);
    for (std::size_t i = 1; i < length; ++i) {
      code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
    }
    if (const StandIn* const found = stand_in_of(code)) {
      if (!result) result.emplace(text);
      std::string older;
      append_utf8(older, found->older);
      result->replace(at, length, older);
    }
    at += length;
  }
  return result;
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
