#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/data/tokenizer_tables.h"
#include "executor/data/unicode.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr ParseLimits kLimits{.bytes = std::size_t{256} << 20,
                              .depth = 32,
                              .values = std::size_t{1} << 24,
                              .keys = std::size_t{1} << 24};
constexpr std::int64_t kLargestId = (1 << 24) - 1;
constexpr std::size_t kMostProblems = 50;

/// GPT-2's own pattern, which ByteLevel uses unless use_regex is false (encoder.py).
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Walks the document; every defect becomes a Problem with its JSON pointer.
class TablesReader {
 public:
  TablesReader(const Document& document, TokenizerTables& tables, Problems& problems)
      : root_(document.root), file_(document.file), tables_(tables), problems_(problems) {}

  void read() {
    if (!root_.is(Kind::map)) return refuse(root_, "", describe(root_), "an object");
    read_model();
    read_added_tokens();
    read_normalizer(root_.find("normalizer"), "/normalizer");
    read_pre_tokenizer(root_.find("pre_tokenizer"), "/pre_tokenizer");
    if (!byte_level_) {
      refuse(root_, "/pre_tokenizer", "no ByteLevel step", "a byte-level tokenizer");
    }
    read_post_processor(root_.find("post_processor"), "/post_processor");
    read_decoder();
  }

 private:
  void refuse(const Node& at, const std::string& place, std::string found, std::string expected) {
    if (problems_.size() >= kMostProblems) return;
    const std::string position =
        at.line > 0 ? std::to_string(at.line) + ":" + std::to_string(at.column) : "1:1";
    problems_.push_back({.file = file_,
                         .place = position + " (" + place + ")",
                         .found = std::move(found),
                         .expected = std::move(expected)});
  }

  static bool absent(const Node* node) { return node == nullptr || node->is(Kind::null); }

  /// The text of a string member, or empty with a Problem.
  std::string text(const Node& map, const std::string& place, const char* key) {
    const Node* node = map.find(key);
    if (node != nullptr && node->is(Kind::string)) return node->text;
    refuse(node == nullptr ? map : *node, place + "/" + key,
           node == nullptr ? "nothing" : describe(*node), "a string");
    return {};
  }

  bool flag(const Node& map, const std::string& place, const char* key, bool absent_value) {
    const Node* node = map.find(key);
    if (absent(node)) return absent_value;
    if (!node->is(Kind::boolean)) {
      refuse(*node, place + "/" + key, describe(*node), "true or false");
    }
    return node->boolean;
  }

  std::optional<std::int32_t> id(const Node& node, const std::string& place) {
    if (node.is(Kind::integer) && node.integer >= 0 && node.integer <= kLargestId) {
      return static_cast<std::int32_t>(node.integer);
    }
    refuse(node, place, describe(node), "an id of 0 to " + std::to_string(kLargestId));
    return std::nullopt;
  }

  /// Gives an id its token; a second, different token is a Problem.
  void assign(const Node& at, const std::string& place, std::int32_t id, const std::string& token) {
    const auto slot = static_cast<std::size_t>(id);
    if (slot >= tables_.token_of.size()) {
      tables_.token_of.resize(slot + 1);
      tables_.special.resize(slot + 1);
    }
    std::string& holder = tables_.token_of[slot];
    if (!holder.empty() && holder != token) {
      refuse(at, place, "id " + std::to_string(id) + " for '" + token + "'",
             "an id that '" + holder + "' does not have");
    }
    holder = token;
  }

  /// The object and its "type", or null with a Problem (nothing when absent).
  const Node* typed(const Node* node, const std::string& place, std::string& type) {
    if (absent(node)) return nullptr;
    if (!node->is(Kind::map)) {
      refuse(*node, place, describe(*node), "an object");
      return nullptr;
    }
    type = text(*node, place, "type");
    return type.empty() ? nullptr : node;
  }

  const Node* list(const Node& map, const std::string& place, const char* key) {
    const Node* node = map.find(key);
    if (node != nullptr && node->is(Kind::list)) return node;
    refuse(node == nullptr ? map : *node, place + "/" + key,
           node == nullptr ? "nothing" : describe(*node), "a list");
    return nullptr;
  }

  void read_model() {
    std::string type;
    const Node* model = root_.find("model");
    if (absent(model)) return refuse(root_, "/model", "nothing", "a BPE model");
    model = typed(model, "/model", type);
    if (model == nullptr) return;
    if (type != "BPE") return refuse(*model, "/model/type", "'" + type + "'", "BPE");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Node* node = model->find(key);
      if (absent(node) || (node->is(Kind::string) && node->text.empty())) continue;
      if (node->is(Kind::integer) && node->integer == 0) continue;
      if (node->is(Kind::number) && node->number == 0) continue;
      refuse(*node, std::string("/model/") + key, describe(*node), "null");
    }
    if (flag(*model, "/model", "byte_fallback", false)) {
      refuse(*model, "/model/byte_fallback", "true", "false: bytes are in the vocabulary");
    }
    tables_.ignore_merges = flag(*model, "/model", "ignore_merges", false);
    tables_.fuse_unknown = flag(*model, "/model", "fuse_unk", false);
    read_vocab(*model);
    read_merges(*model);
    const Node* unknown = model->find("unk_token");
    if (absent(unknown)) return;
    const auto found =
        unknown->is(Kind::string) ? tables_.vocab.find(unknown->text) : tables_.vocab.end();
    if (found == tables_.vocab.end()) {
      return refuse(*unknown, "/model/unk_token", describe(*unknown), "a token of the vocabulary");
    }
    tables_.unknown = found->second;
  }

  void read_vocab(const Node& model) {
    const Node* vocab = model.find("vocab");
    if (vocab == nullptr || !vocab->is(Kind::map) || vocab->keys.empty()) {
      return refuse(vocab == nullptr ? model : *vocab, "/model/vocab",
                    vocab == nullptr ? "nothing" : describe(*vocab),
                    "an object from token to id, not empty");
    }
    tables_.vocab.reserve(vocab->keys.size());
    for (std::size_t i = 0; i < vocab->keys.size(); ++i) {
      const std::string place = "/model/vocab/" + vocab->keys[i];
      const auto number = id(vocab->items[i], place);
      if (!number) continue;
      if (vocab->keys[i].empty()) {
        refuse(vocab->items[i], place, "an empty token", "a token of at least one byte");
        continue;
      }
      tables_.vocab.emplace(vocab->keys[i], *number);
      assign(vocab->items[i], place, *number, vocab->keys[i]);
    }
  }

  /// One merge as its two parts: "a b" or ["a", "b"].
  bool parts(const Node& node, std::string& left, std::string& right) {
    if (node.is(Kind::string)) {
      const std::size_t space = node.text.find(' ');
      if (space == std::string::npos || node.text.find(' ', space + 1) != std::string::npos) {
        return false;
      }
      left = node.text.substr(0, space);
      right = node.text.substr(space + 1);
    } else if (node.is(Kind::list) && node.items.size() == 2 && node.items[0].is(Kind::string) &&
               node.items[1].is(Kind::string)) {
      left = node.items[0].text;
      right = node.items[1].text;
    } else {
      return false;
    }
    return !left.empty() && !right.empty();
  }

  void read_merges(const Node& model) {
    const Node* merges = list(model, "/model", "merges");
    if (merges == nullptr) return;
    tables_.merges.reserve(merges->items.size());
    for (std::size_t i = 0; i < merges->items.size(); ++i) {
      const Node& node = merges->items[i];
      const std::string place = "/model/merges/" + std::to_string(i);
      std::string left, right;
      if (!parts(node, left, right)) {
        refuse(node, place, describe(node), "\"left right\" or [left, right]");
        continue;
      }
      const auto a = tables_.vocab.find(left), b = tables_.vocab.find(right),
                 whole = tables_.vocab.find(left + right);
      const auto missing = a == tables_.vocab.end()       ? left
                           : b == tables_.vocab.end()     ? right
                           : whole == tables_.vocab.end() ? left + right
                                                          : std::string();
      if (!missing.empty()) {
        refuse(node, place, "'" + missing + "', which the vocabulary lacks",
               "tokens of the vocabulary");
        continue;
      }
      // The last of equal pairs counts, as in Hugging Face's map.
      tables_.merges[pair_key(a->second, b->second)] = {static_cast<std::int32_t>(i),
                                                        whole->second};
    }
  }

  void read_added_tokens() {
    const Node* added = root_.find("added_tokens");
    if (absent(added)) return;
    if (!added->is(Kind::list)) {
      return refuse(*added, "/added_tokens", describe(*added), "a list");
    }
    for (std::size_t i = 0; i < added->items.size(); ++i) {
      const Node& node = added->items[i];
      const std::string place = "/added_tokens/" + std::to_string(i);
      if (!node.is(Kind::map)) {
        refuse(node, place, describe(node), "an object");
        continue;
      }
      AddedToken token;
      token.content = text(node, place, "content");
      const Node* number = node.find("id");
      if (number == nullptr) refuse(node, place + "/id", "nothing", "an id");
      const auto token_id = number == nullptr ? std::nullopt : id(*number, place + "/id");
      if (token.content.empty() || !token_id) continue;
      token.id = *token_id;
      token.single_word = flag(node, place, "single_word", false);
      token.lstrip = flag(node, place, "lstrip", false);
      token.rstrip = flag(node, place, "rstrip", false);
      token.special = flag(node, place, "special", false);
      token.normalized = flag(node, place, "normalized", !token.special);
      const auto in_vocab = tables_.vocab.find(token.content);
      if (in_vocab != tables_.vocab.end() && in_vocab->second != token.id) {
        refuse(*number, place + "/id", std::to_string(token.id),
               std::to_string(in_vocab->second) + ", its id in the vocabulary");
      }
      assign(node, place, token.id, token.content);
      tables_.special[static_cast<std::size_t>(token.id)] = token.special;
      tables_.added.push_back(std::move(token));
    }
    std::ranges::stable_sort(tables_.added, [](const AddedToken& a, const AddedToken& b) {
      return a.content.size() > b.content.size();
    });
  }

  void read_normalizer(const Node* node, const std::string& place) {
    std::string type;
    node = typed(node, place, type);
    if (node == nullptr) return;
    if (type == "NFC") {
      tables_.nfc = true;
    } else if (type == "Sequence") {
      const Node* items = list(*node, place, "normalizers");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_normalizer(&items->items[i], place + "/normalizers/" + std::to_string(i));
      }
    } else {
      refuse(*node, place + "/type", "'" + type + "'", "NFC or null");
    }
    // HF normalizes the content of normalized added tokens too.
    for (AddedToken& token : tables_.added) {
      if (token.normalized && tables_.nfc) token.content = nfc(token.content);
    }
  }

  void read_pre_tokenizer(const Node* node, const std::string& place) {
    std::string type;
    node = typed(node, place, type);
    if (node == nullptr) return;
    if (type == "Sequence") {
      const Node* items = list(*node, place, "pretokenizers");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_pre_tokenizer(&items->items[i], place + "/pretokenizers/" + std::to_string(i));
      }
    } else if (byte_level_) {
      refuse(*node, place, "a step after ByteLevel", "ByteLevel as the last step");
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      SplitStep step;
      step.add_prefix_space = flag(*node, place, "add_prefix_space", true);
      if (flag(*node, place, "use_regex", true)) {
        step.pattern = SplitPattern::compile(kGpt2Pattern, file_, place, problems_);
      }
      tables_.steps.push_back(std::move(step));
    } else if (type == "Split") {
      read_split(*node, place);
    } else {
      refuse(*node, place + "/type", "'" + type + "'", "Split, ByteLevel or Sequence");
    }
  }

  void read_split(const Node& node, const std::string& place) {
    const std::string behavior = text(node, place, "behavior");
    if (!behavior.empty() && behavior != "Isolated") {
      refuse(node, place + "/behavior", "'" + behavior + "'", "Isolated");
    }
    if (flag(node, place, "invert", false)) {
      refuse(node, place + "/invert", "true", "false");
    }
    const Node* pattern = node.find("pattern");
    const Node* regex = pattern == nullptr ? nullptr : pattern->find("Regex");
    if (regex == nullptr || !regex->is(Kind::string)) {
      return refuse(node, place + "/pattern", pattern == nullptr ? "nothing" : describe(*pattern),
                    "{\"Regex\": expression}");
    }
    const std::string position = std::to_string(regex->line) + ":" + std::to_string(regex->column);
    auto compiled =
        SplitPattern::compile(regex->text, file_, position + " (" + place + "/pattern)", problems_);
    if (compiled) tables_.steps.push_back({.pattern = std::move(compiled)});
  }

  void read_post_processor(const Node* node, const std::string& place) {
    std::string type;
    node = typed(node, place, type);
    if (node == nullptr || type == "ByteLevel") return;  // ByteLevel changes offsets only
    if (type == "Sequence") {
      const Node* items = list(*node, place, "processors");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_post_processor(&items->items[i], place + "/processors/" + std::to_string(i));
      }
    } else if (type == "TemplateProcessing") {
      read_template(*node, place);
    } else {
      refuse(*node, place + "/type", "'" + type + "'", "ByteLevel or TemplateProcessing");
    }
  }

  void read_template(const Node& node, const std::string& place) {
    const Node* single = list(node, place, "single");
    bool sequence_seen = false;
    for (std::size_t i = 0; single != nullptr && i < single->items.size(); ++i) {
      const Node& item = single->items[i];
      const std::string item_place = place + "/single/" + std::to_string(i);
      const Node* special = item.find("SpecialToken");
      if (special == nullptr && item.find("Sequence") != nullptr) {
        sequence_seen = true;
        continue;
      }
      if (special == nullptr) {
        refuse(item, item_place, describe(item), "a SpecialToken or the Sequence");
        continue;
      }
      const std::string name = text(*special, item_place + "/SpecialToken", "id");
      const auto token = std::ranges::find(tables_.token_of, name);
      if (name.empty() || token == tables_.token_of.end()) {
        refuse(*special, item_place, "'" + name + "'", "a token that has an id");
        continue;
      }
      (sequence_seen ? tables_.after : tables_.before)
          .push_back(static_cast<std::int32_t>(token - tables_.token_of.begin()));
    }
  }

  void read_decoder() {
    std::string type;
    const Node* decoder = root_.find("decoder");
    if (absent(decoder)) return refuse(root_, "/decoder", "nothing", "ByteLevel");
    decoder = typed(decoder, "/decoder", type);
    if (decoder != nullptr && type != "ByteLevel") {
      refuse(*decoder, "/decoder/type", "'" + type + "'", "ByteLevel");
    }
  }

  const Node& root_;
  const std::string& file_;
  TokenizerTables& tables_;
  Problems& problems_;
  bool byte_level_ = false;
};

}  // namespace

std::optional<TokenizerTables> read_tokenizer_tables(std::string_view json, const std::string& file,
                                                     Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(json, file, problems, kLimits);
  if (!document) return std::nullopt;
  TokenizerTables tables;
  TablesReader(*document, tables, problems).read();
  if (problems.size() != before) return std::nullopt;
  return tables;
}

}  // namespace tessera
