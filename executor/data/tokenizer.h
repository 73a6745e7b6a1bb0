// A BPE tokenizer as a Hugging Face tokenizer.json describes it: byte-level (GPT-2, Qwen, Llama 3),
// or SentencePiece's (Llama 2, Mistral).
//
// Supported: normalizers NFC, Prepend and Replace; pre-tokenizers Split (behavior Isolated),
// ByteLevel and Metaspace; model BPE with merges as strings or pairs, ignore_merges and
// byte_fallback; added and special tokens with their strip and single-word rules; post-processor
// TemplateProcessing's single form; decoders ByteLevel, and Replace, ByteFallback, Fuse, Strip.
// Anything else is refused by name, never ignored. Immutable once read: encode and decode may run
// on any number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct TokenizerTables;

class Tokenizer {
 public:
  /// Reads `folder`/tokenizer.json; nullopt when anything was appended to `problems`.
  static std::optional<Tokenizer> open(const std::filesystem::path& folder, Problems& problems);
  static std::optional<Tokenizer> parse(std::string_view json, const std::string& file,
                                        Problems& problems);

  /// Ids of `text`; added tokens written out in it become their ids. Malformed UTF-8 is replaced by
  /// U+FFFD. `add_special_tokens` adds what the post-processor's template adds (Llama 3's BOS).
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = false) const;

  /// Text of `ids`; malformed byte sequences become U+FFFD, ids without a token nothing.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  /// Raw bytes of one token, for streaming; empty for an id without a token.
  std::string bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  /// Bytes that decode() takes away where a text begins so: SentencePiece's first space.
  std::size_t stripped(std::string_view beginning) const;

  /// Largest id + 1, added tokens included.
  std::int32_t size() const;
  std::optional<std::int32_t> id_of(const std::string& token) const;

 private:
  std::shared_ptr<const TokenizerTables> tables_;
};

/// Decodes token by token; text comes out as soon as its UTF-8 is complete.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(tokenizer), skip_special_(skip_special_tokens) {}

  /// The text that `id` completes; may be empty.
  std::string put(std::int32_t id);
  /// The text that is left, an unfinished code point as U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string pending_;
  bool begun_ = false;
};

}  // namespace tessera
