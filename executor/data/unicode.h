// UTF-8 as tokenizers need it: replacement of malformed bytes, NFC, and GPT-2's byte alphabet.
//
// Pure functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Length of the code point that starts at `text[at]`, or 0 with `bad` set to the bytes that one
/// U+FFFD replaces (Unicode 15 section 3.9, "maximal subparts"; what Rust and Python do too).
/// `bad` reaches the end of the text when more bytes could still complete the code point.
int code_point_length(std::string_view text, std::size_t at, int& bad);

/// `text` with every malformed part replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// Length of the longest prefix that no later byte can change: all but a code point that the end
/// of the text cuts.
std::size_t complete_prefix(std::string_view text);

/// `text` with every character that came with Unicode 15 to 16 replaced by an older one of the same
/// general category and length: what tables of Unicode 14 on (PCRE2 10.42 has these) say of the one
/// is what those of Unicode 16 say of the other. nullopt: it has none. Precondition: valid UTF-8.
std::optional<std::string> in_older_characters(std::string_view text);

/// Normalization form C. Precondition: valid UTF-8.
std::string nfc(std::string_view text);

/// The UTF-8 of the printable character that stands for each byte in byte-level vocabularies
/// (bytes_to_unicode of GPT-2's encoder.py).
const std::array<std::string, 256>& byte_alphabet();

/// The bytes behind a token of that alphabet; false when it holds another character.
bool bytes_of(std::string_view token, std::string& bytes);

}  // namespace tessera
