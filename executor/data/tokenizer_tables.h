// The tables of tokenizer.json, resolved to ids; internal to the tokenizer's reader and encoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/data/split_pattern.h"

namespace tessera {

struct AddedToken {
  std::int32_t id = 0;
  std::string content, pattern;  // as written, and as it is found in normalized text
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

/// One pre-tokenizing step: a split pattern, or GPT-2's ByteLevel with its own pattern.
struct SplitStep {
  std::optional<SplitPattern> pattern;  // nothing = no further split
  bool add_prefix_space = false;
};

/// One step of a normalizer, or of a decoder.
struct NormalStep {
  enum class Kind : std::uint8_t { nfc, prepend, replace };
  Kind kind = Kind::nfc;
  std::string from, to;  // of replace; `to` also of prepend
};

/// The pre-tokenizer of SentencePiece's vocabularies: spaces become the mark.
struct Metaspace {
  enum class Prepend : std::uint8_t { always, first, never };  // first: where the text begins
  std::string mark;
  Prepend prepend = Prepend::always;
  bool split = true;  // every mark begins a word
};

/// How their tokens become text: the replacements in every token, bytes, then all in one.
struct SentenceDecoder {
  std::vector<NormalStep> replace;
  std::string strip;             // taken away at the beginning ...
  std::int64_t strip_start = 0;  // so often at most
};

struct Merge {
  std::int32_t rank = 0, result = 0;
};

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using IdMap = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

struct TokenizerTables {
  std::vector<NormalStep> normalizers;
  std::vector<SplitStep> steps;
  bool sentence = false;  // SentencePiece's kind (sentence_pieces.h); else byte-level
  std::optional<Metaspace> metaspace;
  bool byte_fallback = false;
  SentenceDecoder decode;                           // of the first kind
  IdMap vocab;                                      // the model's tokens
  std::unordered_map<std::uint64_t, Merge> merges;  // by pair_key
  bool ignore_merges = false;
  std::optional<std::int32_t> unknown;
  bool fuse_unknown = false;
  std::vector<AddedToken> added;            // longest pattern first
  std::vector<std::string> token_of;        // by id; empty = no token
  std::vector<char> special;                // by id
  std::vector<std::int32_t> before, after;  // what the template adds
};

/// Reads tokenizer.json; nullopt when anything was appended to `problems`.
std::optional<TokenizerTables> read_tokenizer_tables(std::string_view json, const std::string& file,
                                                     Problems& problems);

}  // namespace tessera
