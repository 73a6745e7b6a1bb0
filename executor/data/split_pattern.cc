#include "executor/data/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cost_models/documents/problem.h"
#include "executor/data/unicode.h"

namespace tessera {
namespace {

constexpr std::string_view kSpace =
    R"(\t-\r\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// The pattern with \s and \S spelled out. \S inside a class stays PCRE2's.
std::string with_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      const char next = pattern[++at];
      if (next == 's') {
        out += in_class ? std::string(kSpace) : "[" + std::string(kSpace) + "]";
      } else if (next == 'S' && !in_class) {
        out += "[^" + std::string(kSpace) + "]";
      } else {
        out += {c, next};
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct MatchData {
  pcre2_match_data* data;
  explicit MatchData(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)) {}
  MatchData(const MatchData&) = delete;
  ~MatchData() { pcre2_match_data_free(data); }
};

}  // namespace

std::optional<SplitPattern> SplitPattern::compile(const std::string& pattern,
                                                  const std::string& file, const std::string& place,
                                                  Problems& problems) {
  const std::string spelled = with_white_space(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    problems.push_back({.file = file,
                        .place = place,
                        .found = "'" + pattern + "'",
                        .expected = "a regular expression",
                        .hint = message_of(error)});
    return std::nullopt;
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  SplitPattern result;
  result.code_ = std::shared_ptr<const void>(code, [](const void* held) {
    pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(held)));
  });
  return result;
}

std::vector<std::string_view> SplitPattern::isolate(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const MatchData match(code);
  const std::optional<std::string> older = in_older_characters(text);  // at the same places
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(older ? older->data() : text.data());
  std::vector<std::string_view> pieces;
  std::size_t done = 0, from = 0;
  while (from < text.size()) {
    int found =
        pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, match.data, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          match.data, nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw Error(ExitCode::bad_input, "the tokenizer's split pattern: " + message_of(found));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.data);
    if (range[1] <= range[0]) {  // an empty match splits nothing
      from = range[0] + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80) ++from;
      continue;
    }
    if (range[0] > done) pieces.push_back(text.substr(done, range[0] - done));
    pieces.push_back(text.substr(range[0], range[1] - range[0]));
    done = from = range[1];
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
  return pieces;
}

}  // namespace tessera
