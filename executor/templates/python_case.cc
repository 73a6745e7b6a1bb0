#include "executor/templates/python_case.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace tessera {
namespace {

struct Range {
  char32_t first, last;
};

/// Cased, by DerivedCoreProperties.txt of Unicode 14, beside the categories Lu, Ll and Lt.
constexpr Range kOtherCased[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
    {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
    {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c},   {0x2160, 0x217f},   {0x24b6, 0x24e9},   {0x2c7c, 0x2c7d},
    {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
    {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

/// Case_Ignorable beside the categories Mn, Me, Cf, Lm and Sk.
constexpr std::u32string_view kOtherIgnorable =
    U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";

/// Characters whose upper or title case is several, by SpecialCasing.txt of Unicode 14.
struct SeveralCharacters {
  char32_t of;
  std::u32string_view upper, title;
};
constexpr SeveralCharacters kSeveral[] = {{0x00df, U"SS", U"Ss"},
                                          {0x0149, U"\u02bcN", U"\u02bcN"},
                                          {0x01f0, U"J\u030c", U"J\u030c"},
                                          {0x0390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
                                          {0x03b0, U"\u03a5\u0308\u0301", U"\u03a5\u0308\u0301"},
                                          {0x0587, U"\u0535\u0552", U"\u0535\u0582"},
                                          {0x1e96, U"H\u0331", U"H\u0331"},
                                          {0x1e97, U"T\u0308", U"T\u0308"},
                                          {0x1e98, U"W\u030a", U"W\u030a"},
                                          {0x1e99, U"Y\u030a", U"Y\u030a"},
                                          {0x1e9a, U"A\u02be", U"A\u02be"},
                                          {0x1f50, U"\u03a5\u0313", U"\u03a5\u0313"},
                                          {0x1f52, U"\u03a5\u0313\u0300", U"\u03a5\u0313\u0300"},
                                          {0x1f54, U"\u03a5\u0313\u0301", U"\u03a5\u0313\u0301"},
                                          {0x1f56, U"\u03a5\u0313\u0342", U"\u03a5\u0313\u0342"},
                                          {0x1f80, U"\u1f08\u0399", U"\u1f88"},
                                          {0x1f81, U"\u1f09\u0399", U"\u1f89"},
                                          {0x1f82, U"\u1f0a\u0399", U"\u1f8a"},
                                          {0x1f83, U"\u1f0b\u0399", U"\u1f8b"},
                                          {0x1f84, U"\u1f0c\u0399", U"\u1f8c"},
                                          {0x1f85, U"\u1f0d\u0399", U"\u1f8d"},
                                          {0x1f86, U"\u1f0e\u0399", U"\u1f8e"},
                                          {0x1f87, U"\u1f0f\u0399", U"\u1f8f"},
                                          {0x1f88, U"\u1f08\u0399", U"\u1f88"},
                                          {0x1f89, U"\u1f09\u0399", U"\u1f89"},
                                          {0x1f8a, U"\u1f0a\u0399", U"\u1f8a"},
                                          {0x1f8b, U"\u1f0b\u0399", U"\u1f8b"},
                                          {0x1f8c, U"\u1f0c\u0399", U"\u1f8c"},
                                          {0x1f8d, U"\u1f0d\u0399", U"\u1f8d"},
                                          {0x1f8e, U"\u1f0e\u0399", U"\u1f8e"},
                                          {0x1f8f, U"\u1f0f\u0399", U"\u1f8f"},
                                          {0x1f90, U"\u1f28\u0399", U"\u1f98"},
                                          {0x1f91, U"\u1f29\u0399", U"\u1f99"},
                                          {0x1f92, U"\u1f2a\u0399", U"\u1f9a"},
                                          {0x1f93, U"\u1f2b\u0399", U"\u1f9b"},
                                          {0x1f94, U"\u1f2c\u0399", U"\u1f9c"},
                                          {0x1f95, U"\u1f2d\u0399", U"\u1f9d"},
                                          {0x1f96, U"\u1f2e\u0399", U"\u1f9e"},
                                          {0x1f97, U"\u1f2f\u0399", U"\u1f9f"},
                                          {0x1f98, U"\u1f28\u0399", U"\u1f98"},
                                          {0x1f99, U"\u1f29\u0399", U"\u1f99"},
                                          {0x1f9a, U"\u1f2a\u0399", U"\u1f9a"},
                                          {0x1f9b, U"\u1f2b\u0399", U"\u1f9b"},
                                          {0x1f9c, U"\u1f2c\u0399", U"\u1f9c"},
                                          {0x1f9d, U"\u1f2d\u0399", U"\u1f9d"},
                                          {0x1f9e, U"\u1f2e\u0399", U"\u1f9e"},
                                          {0x1f9f, U"\u1f2f\u0399", U"\u1f9f"},
                                          {0x1fa0, U"\u1f68\u0399", U"\u1fa8"},
                                          {0x1fa1, U"\u1f69\u0399", U"\u1fa9"},
                                          {0x1fa2, U"\u1f6a\u0399", U"\u1faa"},
                                          {0x1fa3, U"\u1f6b\u0399", U"\u1fab"},
                                          {0x1fa4, U"\u1f6c\u0399", U"\u1fac"},
                                          {0x1fa5, U"\u1f6d\u0399", U"\u1fad"},
                                          {0x1fa6, U"\u1f6e\u0399", U"\u1fae"},
                                          {0x1fa7, U"\u1f6f\u0399", U"\u1faf"},
                                          {0x1fa8, U"\u1f68\u0399", U"\u1fa8"},
                                          {0x1fa9, U"\u1f69\u0399", U"\u1fa9"},
                                          {0x1faa, U"\u1f6a\u0399", U"\u1faa"},
                                          {0x1fab, U"\u1f6b\u0399", U"\u1fab"},
                                          {0x1fac, U"\u1f6c\u0399", U"\u1fac"},
                                          {0x1fad, U"\u1f6d\u0399", U"\u1fad"},
                                          {0x1fae, U"\u1f6e\u0399", U"\u1fae"},
                                          {0x1faf, U"\u1f6f\u0399", U"\u1faf"},
                                          {0x1fb2, U"\u1fba\u0399", U"\u1fba\u0345"},
                                          {0x1fb3, U"\u0391\u0399", U"\u1fbc"},
                                          {0x1fb4, U"\u0386\u0399", U"\u0386\u0345"},
                                          {0x1fb6, U"\u0391\u0342", U"\u0391\u0342"},
                                          {0x1fb7, U"\u0391\u0342\u0399", U"\u0391\u0342\u0345"},
                                          {0x1fbc, U"\u0391\u0399", U"\u1fbc"},
                                          {0x1fc2, U"\u1fca\u0399", U"\u1fca\u0345"},
                                          {0x1fc3, U"\u0397\u0399", U"\u1fcc"},
                                          {0x1fc4, U"\u0389\u0399", U"\u0389\u0345"},
                                          {0x1fc6, U"\u0397\u0342", U"\u0397\u0342"},
                                          {0x1fc7, U"\u0397\u0342\u0399", U"\u0397\u0342\u0345"},
                                          {0x1fcc, U"\u0397\u0399", U"\u1fcc"},
                                          {0x1fd2, U"\u0399\u0308\u0300", U"\u0399\u0308\u0300"},
                                          {0x1fd3, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
                                          {0x1fd6, U"\u0399\u0342", U"\u0399\u0342"},
                                          {0x1fd7, U"\u0399\u0308\u0342", U"\u0399\u0308\u0342"},
                                          {0x1fe2, U"\u03a5\u0308\u0300", U"\u03a5\u0308\u0300"},
                                          {0x1fe3, U"\u03a5\u0308\u0301", U"\u03a5\u0308\u0301"},
                                          {0x1fe4, U"\u03a1\u0313", U"\u03a1\u0313"},
                                          {0x1fe6, U"\u03a5\u0342", U"\u03a5\u0342"},
                                          {0x1fe7, U"\u03a5\u0308\u0342", U"\u03a5\u0308\u0342"},
                                          {0x1ff2, U"\u1ffa\u0399", U"\u1ffa\u0345"},
                                          {0x1ff3, U"\u03a9\u0399", U"\u1ffc"},
                                          {0x1ff4, U"\u038f\u0399", U"\u038f\u0345"},
                                          {0x1ff6, U"\u03a9\u0342", U"\u03a9\u0342"},
                                          {0x1ff7, U"\u03a9\u0342\u0399", U"\u03a9\u0342\u0345"},
                                          {0x1ffc, U"\u03a9\u0399", U"\u1ffc"},
                                          {0xfb00, U"FF", U"Ff"},
                                          {0xfb01, U"FI", U"Fi"},
                                          {0xfb02, U"FL", U"Fl"},
                                          {0xfb03, U"FFI", U"Ffi"},
                                          {0xfb04, U"FFL", U"Ffl"},
                                          {0xfb05, U"ST", U"St"},
                                          {0xfb06, U"ST", U"St"},
                                          {0xfb13, U"\u0544\u0546", U"\u0544\u0576"},
                                          {0xfb14, U"\u0544\u0535", U"\u0544\u0565"},
                                          {0xfb15, U"\u0544\u053b", U"\u0544\u056b"},
                                          {0xfb16, U"\u054e\u0546", U"\u054e\u0576"},
                                          {0xfb17, U"\u0544\u053d", U"\u0544\u056d"}};

constexpr char32_t kCapitalSigma = 0x3a3, kSigma = 0x3c3, kFinalSigma = 0x3c2;
constexpr char32_t kDottedCapitalI = 0x130;

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_ignorable(char32_t character) {
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return kOtherIgnorable.find(character) != std::u32string_view::npos;
  }
}

/// Whether a sigma ends a word: something with case before it, and nothing with case after it.
bool is_final(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

bool is_cased(char32_t character) {
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      return std::ranges::any_of(kOtherCased, [character](const Range& range) {
        return range.first <= character && character <= range.last;
      });
  }
}

std::u32string lower_case(std::u32string_view text, std::size_t at) {
  const char32_t character = text[at];
  if (character == kCapitalSigma) {
    return std::u32string(1, is_final(text, at) ? kFinalSigma : kSigma);
  }
  if (character == kDottedCapitalI) return U"i\u0307";
  return std::u32string(
      1, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
}

std::u32string upper_case(char32_t character, bool title) {
  const auto* const several = std::ranges::find(kSeveral, character, &SeveralCharacters::of);
  if (several != std::end(kSeveral)) {
    return std::u32string(title ? several->title : several->upper);
  }
  const auto point = static_cast<utf8proc_int32_t>(character);
  return std::u32string(
      1, static_cast<char32_t>(title ? utf8proc_totitle(point) : utf8proc_toupper(point)));
}

}  // namespace tessera
