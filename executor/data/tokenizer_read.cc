#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/data/sentence_pieces.h"
#include "executor/data/tokenizer_nodes.h"
#include "executor/data/tokenizer_steps.h"
#include "executor/data/tokenizer_tables.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr ParseLimits kLimits{.bytes = std::size_t{256} << 20,
                              .depth = 32,
                              .values = std::size_t{1} << 24,
                              .keys = std::size_t{1} << 24};

/// Walks the document.
class TablesReader {
 public:
  TablesReader(const Document& document, TokenizerTables& tables, Problems& problems)
      : root_(document.root), nodes_(document.file, problems), tables_(tables) {}

  void read() {
    if (!root_.is(Kind::map)) return nodes_.refuse(root_, "", describe(root_), "an object");
    read_model();
    read_added_tokens();
    read_steps(root_, nodes_, tables_);
    read_post_processor(root_.find("post_processor"), "/post_processor");
    normalize_added_tokens();
  }

 private:
  /// Gives an id its token; a second, different token is a Problem.
  void assign(const Node& at, const std::string& place, std::int32_t id, const std::string& token) {
    const auto slot = static_cast<std::size_t>(id);
    if (slot >= tables_.token_of.size()) {
      tables_.token_of.resize(slot + 1);
      tables_.special.resize(slot + 1);
    }
    std::string& holder = tables_.token_of[slot];
    if (!holder.empty() && holder != token) {
      nodes_.refuse(at, place, "id " + std::to_string(id) + " for '" + token + "'",
                    "an id that '" + holder + "' does not have");
    }
    holder = token;
  }

  /// HF looks for normalized tokens as the normalizer writes them, and decodes them so.
  void normalize_added_tokens() {
    for (AddedToken& token : tables_.added) {
      token.pattern = token.normalized ? normalized(tables_, token.content) : token.content;
      tables_.token_of[static_cast<std::size_t>(token.id)] = token.pattern;
    }
    std::ranges::stable_sort(tables_.added, [](const AddedToken& a, const AddedToken& b) {
      return a.pattern.size() > b.pattern.size();
    });
  }

  void read_model() {
    std::string type;
    const Node* model = root_.find("model");
    if (TokenizerNodes::absent(model))
      return nodes_.refuse(root_, "/model", "nothing", "a BPE model");
    model = nodes_.typed(model, "/model", type);
    if (model == nullptr) return;
    if (type != "BPE") return nodes_.refuse(*model, "/model/type", "'" + type + "'", "BPE");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Node* node = model->find(key);
      if (TokenizerNodes::absent(node) || (node->is(Kind::string) && node->text.empty())) continue;
      if (node->is(Kind::integer) && node->integer == 0) continue;
      if (node->is(Kind::number) && node->number == 0) continue;
      nodes_.refuse(*node, std::string("/model/") + key, describe(*node), "null");
    }
    tables_.byte_fallback = nodes_.flag(*model, "/model", "byte_fallback", false);
    tables_.ignore_merges = nodes_.flag(*model, "/model", "ignore_merges", false);
    tables_.fuse_unknown = nodes_.flag(*model, "/model", "fuse_unk", false);
    read_vocab(*model);
    read_merges(*model);
    const Node* unknown = model->find("unk_token");
    if (TokenizerNodes::absent(unknown)) return;
    const auto found =
        unknown->is(Kind::string) ? tables_.vocab.find(unknown->text) : tables_.vocab.end();
    if (found == tables_.vocab.end()) {
      return nodes_.refuse(*unknown, "/model/unk_token", describe(*unknown),
                           "a token of the vocabulary");
    }
    tables_.unknown = found->second;
  }

  void read_vocab(const Node& model) {
    const Node* vocab = model.find("vocab");
    if (vocab == nullptr || !vocab->is(Kind::map) || vocab->keys.empty()) {
      return nodes_.refuse(vocab == nullptr ? model : *vocab, "/model/vocab",
                           vocab == nullptr ? "nothing" : describe(*vocab),
                           "an object from token to id, not empty");
    }
    tables_.vocab.reserve(vocab->keys.size());
    for (std::size_t i = 0; i < vocab->keys.size(); ++i) {
      const std::string place = "/model/vocab/" + vocab->keys[i];
      const auto number = nodes_.id(vocab->items[i], place);
      if (!number) continue;
      if (vocab->keys[i].empty()) {
        nodes_.refuse(vocab->items[i], place, "an empty token", "a token of at least one byte");
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
    const Node* merges = nodes_.list(model, "/model", "merges");
    if (merges == nullptr) return;
    tables_.merges.reserve(merges->items.size());
    for (std::size_t i = 0; i < merges->items.size(); ++i) {
      const Node& node = merges->items[i];
      const std::string place = "/model/merges/" + std::to_string(i);
      std::string left, right;
      if (!parts(node, left, right)) {
        nodes_.refuse(node, place, describe(node), "\"left right\" or [left, right]");
        continue;
      }
      const auto a = tables_.vocab.find(left), b = tables_.vocab.find(right),
                 whole = tables_.vocab.find(left + right);
      const auto missing = a == tables_.vocab.end()       ? left
                           : b == tables_.vocab.end()     ? right
                           : whole == tables_.vocab.end() ? left + right
                                                          : std::string();
      if (!missing.empty()) {
        nodes_.refuse(node, place, "'" + missing + "', which the vocabulary lacks",
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
    if (TokenizerNodes::absent(added)) return;
    if (!added->is(Kind::list)) {
      return nodes_.refuse(*added, "/added_tokens", describe(*added), "a list");
    }
    for (std::size_t i = 0; i < added->items.size(); ++i) {
      const Node& node = added->items[i];
      const std::string place = "/added_tokens/" + std::to_string(i);
      if (!node.is(Kind::map)) {
        nodes_.refuse(node, place, describe(node), "an object");
        continue;
      }
      AddedToken token;
      token.content = nodes_.text(node, place, "content");
      const Node* number = node.find("id");
      if (number == nullptr) nodes_.refuse(node, place + "/id", "nothing", "an id");
      const auto token_id = number == nullptr ? std::nullopt : nodes_.id(*number, place + "/id");
      if (token.content.empty() || !token_id) continue;
      token.id = *token_id;
      token.single_word = nodes_.flag(node, place, "single_word", false);
      token.lstrip = nodes_.flag(node, place, "lstrip", false);
      token.rstrip = nodes_.flag(node, place, "rstrip", false);
      token.special = nodes_.flag(node, place, "special", false);
      token.normalized = nodes_.flag(node, place, "normalized", !token.special);
      const auto in_vocab = tables_.vocab.find(token.content);
      if (in_vocab != tables_.vocab.end() && in_vocab->second != token.id) {
        nodes_.refuse(*number, place + "/id", std::to_string(token.id),
                      std::to_string(in_vocab->second) + ", its id in the vocabulary");
      }
      assign(node, place, token.id, token.content);
      tables_.special[static_cast<std::size_t>(token.id)] = token.special;
      tables_.added.push_back(std::move(token));
    }
  }

  void read_post_processor(const Node* node, const std::string& place) {
    std::string type;
    node = nodes_.typed(node, place, type);
    if (node == nullptr || type == "ByteLevel") return;  // ByteLevel changes offsets only
    if (type == "Sequence") {
      const Node* items = nodes_.list(*node, place, "processors");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_post_processor(&items->items[i], place + "/processors/" + std::to_string(i));
      }
    } else if (type == "TemplateProcessing") {
      read_template(*node, place);
    } else {
      nodes_.refuse(*node, place + "/type", "'" + type + "'", "ByteLevel or TemplateProcessing");
    }
  }

  void read_template(const Node& node, const std::string& place) {
    const Node* single = nodes_.list(node, place, "single");
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
        nodes_.refuse(item, item_place, describe(item), "a SpecialToken or the Sequence");
        continue;
      }
      const std::string name = nodes_.text(*special, item_place + "/SpecialToken", "id");
      const auto token = std::ranges::find(tables_.token_of, name);
      if (name.empty() || token == tables_.token_of.end()) {
        nodes_.refuse(*special, item_place, "'" + name + "'", "a token that has an id");
        continue;
      }
      (sequence_seen ? tables_.after : tables_.before)
          .push_back(static_cast<std::int32_t>(token - tables_.token_of.begin()));
    }
  }

  const Node& root_;
  TokenizerNodes nodes_;
  TokenizerTables& tables_;
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
