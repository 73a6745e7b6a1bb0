#include "executor/data/tokenizer.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "executor/data/sentence_pieces.h"
#include "executor/data/tokenizer_tables.h"
#include "executor/data/unicode.h"

namespace tessera {
namespace {

constexpr std::size_t kLargestTokenizer = std::size_t{256} << 20;

/// A symbol of a word during merging, linked to its neighbours.
struct Symbol {
  std::int32_t id, previous, next;  // places; -1 = none
};

/// A pair of symbols that may merge; lowest rank first, then leftmost.
struct Candidate {
  std::int32_t rank, at, result;
  std::uint64_t pair;
  bool operator<(const Candidate& other) const {
    return std::pair(rank, at) > std::pair(other.rank, other.at);
  }
};

std::vector<std::int32_t> byte_level_characters(const TokenizerTables& tables,
                                                std::string_view word) {
  std::vector<std::int32_t> ids;
  bool last_unknown = false;
  for (const char byte : word) {
    const auto found = tables.vocab.find(byte_alphabet()[static_cast<unsigned char>(byte)]);
    const bool known = found != tables.vocab.end();
    if (!known && (!tables.unknown || (last_unknown && tables.fuse_unknown))) continue;
    ids.push_back(known ? found->second : *tables.unknown);
    last_unknown = !known;
  }
  return ids;
}

/// The word's characters, linked.
std::vector<Symbol> symbols_of(const TokenizerTables& tables, std::string_view word) {
  std::vector<Symbol> symbols;
  for (const std::int32_t id :
       tables.sentence ? sentence_characters(tables, word) : byte_level_characters(tables, word)) {
    const auto at = static_cast<std::int32_t>(symbols.size());
    if (at > 0) symbols.back().next = at;
    symbols.push_back({id, at - 1, -1});
  }
  return symbols;
}

/// Byte-pair merging in the order of the merges' ranks (Sennrich et al. 2016).
void merge_word(const TokenizerTables& tables, std::string_view word,
                std::vector<std::int32_t>& ids) {
  std::vector<Symbol> symbols = symbols_of(tables, word);
  std::priority_queue<Candidate> queue;
  const auto at = [&](std::int32_t place) -> Symbol& {
    return symbols[static_cast<std::size_t>(place)];
  };
  const auto offer = [&](std::int32_t left) {
    if (left < 0 || at(left).next < 0) return;
    const std::uint64_t pair = pair_key(at(left).id, at(at(left).next).id);
    const auto merge = tables.merges.find(pair);
    if (merge == tables.merges.end()) return;
    queue.push({merge->second.rank, left, merge->second.result, pair});
  };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(symbols.size()); ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.at);
    if (left.id < 0 || left.next < 0) continue;  // merged away
    Symbol& right = at(left.next);
    if (pair_key(left.id, right.id) != best.pair) continue;  // changed since
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.at;
    offer(left.previous);
    offer(best.at);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

void encode_word(const TokenizerTables& tables, std::string_view word,
                 std::vector<std::int32_t>& ids) {
  if (tables.ignore_merges) {
    std::string token;
    if (tables.sentence) token = word;
    for (const char byte : word.substr(token.size()))
      token += byte_alphabet()[static_cast<unsigned char>(byte)];
    if (const auto whole = tables.vocab.find(token); whole != tables.vocab.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  merge_word(tables, word, ids);
}

/// Text without added tokens: pre-tokenizing steps, then merging. `at_start`: the text begins so.
void encode_plain(const TokenizerTables& tables, std::string_view text, bool at_start,
                  std::vector<std::int32_t>& ids) {
  if (text.empty()) return;
  if (tables.sentence) {
    for (const std::string& word : sentence_words(tables, text, at_start)) {
      encode_word(tables, word, ids);
    }
    return;
  }
  std::vector<std::string> words{std::string(text)};
  for (const SplitStep& step : tables.steps) {
    std::vector<std::string> next;
    for (std::string& word : words) {
      if (step.add_prefix_space && !word.starts_with(' ')) word.insert(word.begin(), ' ');
      if (!step.pattern) {
        next.push_back(std::move(word));
        continue;
      }
      for (const std::string_view piece : step.pattern->isolate(word)) next.emplace_back(piece);
    }
    words = std::move(next);
  }
  for (const std::string& word : words) encode_word(tables, word, ids);
}

bool is_space(std::string_view character) {
  static constexpr std::string_view kWide[] = {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001",
                                               "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                               "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
                                               "\u2029", "\u202f", "\u205f", "\u3000"};
  if (character.size() == 1)
    return character[0] == ' ' || (character[0] >= 9 && character[0] <= 13);
  return std::ranges::find(kWide, character) != std::end(kWide);
}

std::size_t start_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

std::string_view first_character(std::string_view text) {
  int bad = 0;
  return text.substr(0, static_cast<std::size_t>(code_point_length(text, 0, bad)));
}

/// What Unicode calls a word character (UTS 18, annex C), as the regular expressions of Hugging
/// Face's tokenizers have it: marks are some, and numbers that are no decimal digits are none.
bool is_word(std::string_view character) {
  static const auto word = [] {
    Problems none;
    return SplitPattern::compile(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])", "", "",
                                 none);
  }();
  // Two word characters in a row make two pieces; one that is none makes one with its neighbour.
  const std::string probe = "-" + std::string(character);
  return word->isolate(probe).size() == 2;
}

struct Found {
  std::size_t begin, end;
  const AddedToken* token;
};

/// The next added token at or after `from`: leftmost, then longest.
std::optional<Found> next_added(const TokenizerTables& tables, std::string_view text,
                                std::size_t from, bool normalized) {
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const AddedToken& token : tables.added) {
      if (token.normalized != normalized || !text.substr(at).starts_with(token.pattern)) continue;
      return Found{at, at + token.pattern.size(), &token};
    }
  }
  return std::nullopt;
}

bool stands_alone(std::string_view text, const Found& found) {
  const auto before = text.substr(0, found.begin), after = text.substr(found.end);
  return (before.empty() || !is_word(before.substr(start_of_last(before)))) &&
         (after.empty() || !is_word(first_character(after)));
}

/// Cuts `text` at added tokens of one kind; `plain` gets what lies between them. As in Hugging
/// Face's a token is looked for from where the one before it ends, in the spaces that this one
/// took, too.
template <class Plain>
void cut_at_added(const TokenizerTables& tables, std::string_view text, bool normalized,
                  std::vector<std::int32_t>& ids, const Plain& plain) {
  std::size_t done = 0, from = 0;
  while (const auto found = next_added(tables, text, from, normalized)) {
    from = found->end;
    if (found->token->single_word && !stands_alone(text, *found)) continue;
    std::size_t begin = found->begin, end = found->end;
    while (found->token->lstrip && begin > done) {
      const std::size_t last = start_of_last(text.substr(0, begin));
      if (!is_space(text.substr(last, begin - last))) break;
      begin = last;
    }
    while (found->token->rstrip && end < text.size() &&
           is_space(first_character(text.substr(end)))) {
      end += first_character(text.substr(end)).size();
    }
    if (begin > done) plain(text.substr(done, begin - done));
    ids.push_back(found->token->id);
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}

}  // namespace

std::optional<Tokenizer> Tokenizer::open(const std::filesystem::path& folder, Problems& problems) {
  const auto file = folder / "tokenizer.json";
  const auto text = read_text_file(file, kLargestTokenizer, problems);
  if (!text) return std::nullopt;
  return parse(*text, file.string(), problems);
}

std::optional<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& file,
                                          Problems& problems) {
  auto tables = read_tokenizer_tables(json, file, problems);
  if (!tables) return std::nullopt;
  Tokenizer result;
  result.tables_ = std::make_shared<const TokenizerTables>(std::move(*tables));
  return result;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  const TokenizerTables& tables = *tables_;
  std::vector<std::int32_t> ids;
  if (add_special_tokens) ids = tables.before;
  const std::string valid = valid_utf8(text);
  cut_at_added(tables, valid, false, ids, [&](std::string_view raw) {
    const std::string normal = normalized(tables, raw);
    cut_at_added(tables, normal, true, ids, [&](std::string_view plain) {
      const bool at_start = raw.data() == valid.data() && plain.data() == normal.data();
      encode_plain(tables, plain, at_start, ids);
    });
  });
  if (add_special_tokens) ids.insert(ids.end(), tables.after.begin(), tables.after.end());
  return ids;
}

std::string Tokenizer::bytes(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  const std::string& token = tables_->token_of[static_cast<std::size_t>(id)];
  std::string raw;
  if (!tables_->sentence) {
    return bytes_of(token, raw) ? raw : token;  // an added token is its own text
  }
  if (const std::optional<char> byte = byte_token(token)) return {*byte};
  SentenceDecoder inside = tables_->decode;
  inside.strip_start = 0;
  return sentence_text(inside, std::span(&token, 1));
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  if (tables_->sentence) {
    std::vector<std::string> tokens;
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= size() || (skip_special_tokens && is_special(id))) continue;
      tokens.push_back(tables_->token_of[static_cast<std::size_t>(id)]);
    }
    return sentence_text(tables_->decode, tokens);
  }
  std::string raw;
  for (const std::int32_t id : ids) {
    if (!skip_special_tokens || !is_special(id)) raw += bytes(id);
  }
  return valid_utf8(raw);
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < size() && tables_->special[static_cast<std::size_t>(id)] != 0;
}

std::size_t Tokenizer::stripped(std::string_view beginning) const {
  const SentenceDecoder& decoder = tables_->decode;
  const bool strips = decoder.strip_start > 0 && beginning.starts_with(decoder.strip);
  return strips ? decoder.strip.size() : 0;
}

std::int32_t Tokenizer::size() const { return static_cast<std::int32_t>(tables_->token_of.size()); }

std::optional<std::int32_t> Tokenizer::id_of(const std::string& token) const {
  for (const AddedToken& added : tables_->added) {
    if (added.content == token) return added.id;
  }
  const auto found = tables_->vocab.find(token);
  if (found == tables_->vocab.end()) return std::nullopt;
  return found->second;
}

std::string StreamDecoder::put(std::int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  pending_ += tokenizer_.bytes(id);
  if (!begun_ && !pending_.empty()) {
    begun_ = true;
    pending_.erase(0, tokenizer_.stripped(pending_));
  }
  const std::size_t complete = complete_prefix(pending_);
  std::string text = valid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string StreamDecoder::finish() { return valid_utf8(std::exchange(pending_, {})); }

}  // namespace tessera
