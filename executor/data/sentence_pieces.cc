#include "executor/data/sentence_pieces.h"

#include <array>
#include <charconv>
#include <utility>

#include "executor/data/unicode.h"

namespace tessera {
namespace {

/// Every occurrence from the left.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string byte_name(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

/// The ids of a character's bytes; empty where the vocabulary lacks one.
std::vector<std::int32_t> bytes_in(const IdMap& vocab, std::string_view character) {
  std::vector<std::int32_t> ids;
  for (const char byte : character) {
    const auto found = vocab.find(byte_name(static_cast<unsigned char>(byte)));
    if (found == vocab.end()) return {};
    ids.push_back(found->second);
  }
  return ids;
}

}  // namespace

std::string normalized(const TokenizerTables& tables, std::string_view text) {
  std::string normal(text);
  for (const NormalStep& step : tables.normalizers) {
    switch (step.kind) {
      case NormalStep::Kind::nfc:
        normal = nfc(normal);
        break;
      case NormalStep::Kind::prepend:
        if (!normal.empty()) normal.insert(0, step.to);
        break;
      case NormalStep::Kind::replace:
        normal = replaced(normal, step.from, step.to);
        break;
    }
  }
  return normal;
}

std::vector<std::string> sentence_words(const TokenizerTables& tables, std::string_view text,
                                        bool at_start) {
  if (!tables.metaspace) return {std::string(text)};
  const Metaspace& space = *tables.metaspace;
  std::string marked = replaced(text, " ", space.mark);
  const bool wanted = space.prepend == Metaspace::Prepend::always ||
                      (space.prepend == Metaspace::Prepend::first && at_start);
  if (wanted && !marked.starts_with(space.mark)) marked.insert(0, space.mark);
  if (!space.split) return {std::move(marked)};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < marked.size();) {
    const std::size_t next = marked.find(space.mark, at + 1);  // every mark begins a word
    words.push_back(marked.substr(at, next - at));
    at = std::min(next, marked.size());
  }
  return words;
}

std::vector<std::int32_t> sentence_characters(const TokenizerTables& tables,
                                              std::string_view word) {
  std::vector<std::int32_t> ids;
  bool unknown_waits = false;  // it is written before the next character that is known
  const auto write_unknown = [&] {
    if (std::exchange(unknown_waits, false)) ids.push_back(*tables.unknown);
  };
  for (std::size_t at = 0; at < word.size();) {
    int bad = 0;
    const auto length = static_cast<std::size_t>(code_point_length(word, at, bad));
    const std::string_view character = word.substr(at, length);
    at += length;
    const auto found = tables.vocab.find(character);
    if (found != tables.vocab.end()) {
      write_unknown();
      ids.push_back(found->second);
      continue;
    }
    const std::vector<std::int32_t> bytes =
        tables.byte_fallback ? bytes_in(tables.vocab, character) : std::vector<std::int32_t>();
    ids.insert(ids.end(), bytes.begin(), bytes.end());
    if (!bytes.empty() || !tables.unknown) continue;
    if (!tables.fuse_unknown) write_unknown();
    unknown_waits = true;
  }
  write_unknown();
  return ids;
}

std::optional<char> byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || end != token.data() + 5 || value < 0) return std::nullopt;
  return static_cast<char>(value);
}

std::string sentence_text(const SentenceDecoder& decoder, std::span<const std::string> tokens) {
  std::string text, bytes;
  const auto flush = [&] {
    const bool valid = valid_utf8(bytes) == bytes;
    for (std::size_t i = 0; !valid && i < bytes.size(); ++i) text += "\ufffd";
    if (valid) text += bytes;
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    std::string piece = token;
    for (const NormalStep& step : decoder.replace) piece = replaced(piece, step.from, step.to);
    if (const std::optional<char> byte = byte_token(piece)) {
      bytes += *byte;
      continue;
    }
    flush();
    text += piece;
  }
  flush();
  std::string_view left = text;
  for (std::int64_t i = 0; i < decoder.strip_start && left.starts_with(decoder.strip); ++i) {
    left.remove_prefix(decoder.strip.size());
    if (decoder.strip.empty()) break;
  }
  return std::string(left);
}

}  // namespace tessera
