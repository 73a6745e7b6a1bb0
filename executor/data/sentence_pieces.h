// Vocabularies of SentencePiece as tokenizer.json has them (Llama 2, Mistral): tokens are text in
// which a mark stands for a space, and what no token has is spelled in bytes, "<0xE4>".
//
// As Hugging Face's tokenizers 0.23: normalizers/{prepend,replace}.rs, pre_tokenizers/metaspace.rs,
// models/bpe/model.rs (merge_word), decoders/{byte_fallback,fuse,strip}.rs. Pure functions; text is
// valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizer_tables.h"

namespace tessera {

/// The normalizers' steps, one after another.
std::string normalized(const TokenizerTables& tables, std::string_view text);

/// Words of a part of the text; `at_start`: it begins where the text does.
std::vector<std::string> sentence_words(const TokenizerTables& tables, std::string_view text,
                                        bool at_start);

/// The ids of a word's characters, before any merge.
std::vector<std::int32_t> sentence_characters(const TokenizerTables& tables, std::string_view word);

/// The byte that a token "<0xE4>" stands for.
std::optional<char> byte_token(std::string_view token);

/// The text of tokens. Bytes that are no UTF-8 become U+FFFD, one each.
std::string sentence_text(const SentenceDecoder& decoder, std::span<const std::string> tokens);

}  // namespace tessera
