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
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

/// One pre-tokenizing step: a split pattern, or GPT-2's ByteLevel with its own pattern.
struct SplitStep {
  std::optional<SplitPattern> pattern;  // nothing = no further split
  bool add_prefix_space = false;
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
  bool nfc = false;
  std::vector<SplitStep> steps;
  IdMap vocab;                                      // the model's tokens
  std::unordered_map<std::uint64_t, Merge> merges;  // by pair_key
  bool ignore_merges = false;
  std::optional<std::int32_t> unknown;
  bool fuse_unknown = false;
  std::vector<AddedToken> added;            // longest content first
  std::vector<std::string> token_of;        // by id; empty = no token
  std::vector<char> special;                // by id
  std::vector<std::int32_t> before, after;  // what the template adds
};

/// Reads tokenizer.json; nullopt when anything was appended to `problems`.
std::optional<TokenizerTables> read_tokenizer_tables(std::string_view json, const std::string& file,
                                                     Problems& problems);

}  // namespace tessera
