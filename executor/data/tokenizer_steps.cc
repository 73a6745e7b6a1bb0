#include "executor/data/tokenizer_steps.h"

#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

/// GPT-2's own pattern, which ByteLevel uses unless use_regex is false (encoder.py).
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class StepsReader {
 public:
  StepsReader(const Node& root, TokenizerNodes& nodes, TokenizerTables& tables)
      : root_(root), nodes_(nodes), tables_(tables) {}

  void read() {
    read_normalizer(root_.find("normalizer"), "/normalizer");
    read_pre_tokenizer(root_.find("pre_tokenizer"), "/pre_tokenizer");
    tables_.sentence = !byte_level_ && (tables_.byte_fallback || tables_.metaspace);
    if (!byte_level_ && !tables_.sentence) {
      nodes_.refuse(root_, "/pre_tokenizer", "no ByteLevel step",
                    "a byte-level tokenizer, or one of SentencePiece: Metaspace or byte_fallback");
    }
    if (byte_level_ && tables_.metaspace) {
      nodes_.refuse(root_, "/pre_tokenizer", "Metaspace and ByteLevel", "one of them");
    }
    if (byte_level_ && tables_.byte_fallback) {
      nodes_.refuse(root_, "/model/byte_fallback", "true",
                    "false: the bytes are in a byte-level vocabulary");
    }
    read_decoder();
  }

 private:
  void read_normalizer(const Node* node, const std::string& place) {
    std::string type;
    node = nodes_.typed(node, place, type);
    if (node == nullptr) return;
    if (type == "NFC") {
      tables_.normalizers.push_back({.kind = NormalStep::Kind::nfc});
    } else if (type == "Prepend") {
      tables_.normalizers.push_back(
          {.kind = NormalStep::Kind::prepend, .to = nodes_.text(*node, place, "prepend")});
    } else if (type == "Replace") {
      NormalStep step = replacement(*node, place);
      if (!step.from.empty()) tables_.normalizers.push_back(std::move(step));
    } else if (type == "Sequence") {
      const Node* items = nodes_.list(*node, place, "normalizers");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_normalizer(&items->items[i], place + "/normalizers/" + std::to_string(i));
      }
    } else {
      nodes_.refuse(*node, place + "/type", "'" + type + "'", "NFC, Prepend, Replace or null");
    }
  }

  NormalStep replacement(const Node& node, const std::string& place) {
    return {.kind = NormalStep::Kind::replace,
            .from = nodes_.pattern(node, place, "pattern"),
            .to = nodes_.text(node, place, "content")};
  }

  void read_pre_tokenizer(const Node* node, const std::string& place) {
    std::string type;
    node = nodes_.typed(node, place, type);
    if (node == nullptr) return;
    if (type == "Sequence") {
      const Node* items = nodes_.list(*node, place, "pretokenizers");
      for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
        read_pre_tokenizer(&items->items[i], place + "/pretokenizers/" + std::to_string(i));
      }
    } else if (byte_level_) {
      nodes_.refuse(*node, place, "a step after ByteLevel", "ByteLevel as the last step");
    } else if (tables_.metaspace) {
      nodes_.refuse(*node, place, "a step after Metaspace", "Metaspace alone");
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      SplitStep step;
      step.add_prefix_space = nodes_.flag(*node, place, "add_prefix_space", true);
      if (nodes_.flag(*node, place, "use_regex", true)) {
        step.pattern = SplitPattern::compile(kGpt2Pattern, nodes_.file(), place, nodes_.problems());
      }
      tables_.steps.push_back(std::move(step));
    } else if (type == "Split") {
      read_split(*node, place);
    } else if (type == "Metaspace") {
      read_metaspace(*node, place);
    } else {
      nodes_.refuse(*node, place + "/type", "'" + type + "'",
                    "Split, ByteLevel, Metaspace or Sequence");
    }
  }

  void read_split(const Node& node, const std::string& place) {
    const std::string behavior = nodes_.text(node, place, "behavior");
    if (!behavior.empty() && behavior != "Isolated") {
      nodes_.refuse(node, place + "/behavior", "'" + behavior + "'", "Isolated");
    }
    if (nodes_.flag(node, place, "invert", false)) {
      nodes_.refuse(node, place + "/invert", "true", "false");
    }
    const Node* pattern = node.find("pattern");
    const Node* regex = pattern == nullptr ? nullptr : pattern->find("Regex");
    if (regex == nullptr || !regex->is(Kind::string)) {
      return nodes_.refuse(node, place + "/pattern",
                           pattern == nullptr ? "nothing" : describe(*pattern),
                           "{\"Regex\": expression}");
    }
    const std::string position = std::to_string(regex->line) + ":" + std::to_string(regex->column);
    auto compiled = SplitPattern::compile(regex->text, nodes_.file(),
                                          position + " (" + place + "/pattern)", nodes_.problems());
    if (compiled) tables_.steps.push_back({.pattern = std::move(compiled)});
  }

  void read_metaspace(const Node& node, const std::string& place) {
    Metaspace space{.mark = nodes_.text(node, place, "replacement")};
    space.split = nodes_.flag(node, place, "split", true);
    const Node* const scheme = node.find("prepend_scheme");
    const std::string word = scheme != nullptr && scheme->is(Kind::string) ? scheme->text : "";
    if (TokenizerNodes::absent(scheme)) {
      const bool prepends = nodes_.flag(node, place, "add_prefix_space", true);  // older spelling
      if (!prepends) space.prepend = Metaspace::Prepend::never;
    } else if (word == "always") {
      space.prepend = Metaspace::Prepend::always;
    } else if (word == "first") {
      space.prepend = Metaspace::Prepend::first;
    } else if (word == "never") {
      space.prepend = Metaspace::Prepend::never;
    } else {
      nodes_.refuse(*scheme, place + "/prepend_scheme", describe(*scheme),
                    "always, first or never");
    }
    if (!space.mark.empty()) tables_.metaspace = std::move(space);
  }

  void read_decoder() {
    std::string type;
    const Node* decoder = root_.find("decoder");
    const std::string wanted = tables_.sentence
                                   ? "Sequence of Replace, ByteFallback, Fuse and Strip, as "
                                     "Metaspace or byte_fallback need"
                                   : "ByteLevel";
    if (TokenizerNodes::absent(decoder)) return nodes_.refuse(root_, "/decoder", "nothing", wanted);
    decoder = nodes_.typed(decoder, "/decoder", type);
    if (decoder == nullptr) return;
    if (type != (tables_.sentence ? "Sequence" : "ByteLevel")) {
      return nodes_.refuse(*decoder, "/decoder/type", "'" + type + "'", wanted);
    }
    if (tables_.sentence) read_sentence_decoder(*decoder, wanted);
  }

  /// Replace steps, ByteFallback, Fuse, and Strip at the beginning, in this order.
  void read_sentence_decoder(const Node& decoder, const std::string& wanted) {
    const Node* items = nodes_.list(decoder, "/decoder", "decoders");
    std::size_t stage = 0;  // how many of ByteFallback, Fuse and Strip have been seen
    for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
      const std::string place = "/decoder/decoders/" + std::to_string(i);
      std::string type;
      const Node* node = nodes_.typed(&items->items[i], place, type);
      if (node == nullptr) continue;
      if (type == "Replace" && stage == 0) {
        tables_.decode.replace.push_back(replacement(*node, place));
      } else if (type == "ByteFallback" && stage == 0) {
        stage = 1;
      } else if (type == "Fuse" && stage == 1) {
        stage = 2;
      } else if (type == "Strip" && stage == 2) {
        stage = 3;
        read_strip(*node, place);
      } else {
        nodes_.refuse(*node, place, "'" + type + "'", wanted);
      }
    }
    if (items != nullptr && stage < 2) {
      nodes_.refuse(decoder, "/decoder/decoders", "no ByteFallback followed by Fuse", wanted);
    }
  }

  void read_strip(const Node& node, const std::string& place) {
    tables_.decode.strip = nodes_.text(node, place, "content");
    const auto count = [&](const char* key) -> std::int64_t {
      const Node* number = node.find(key);
      if (number != nullptr && number->is(Kind::integer) && number->integer >= 0) {
        return number->integer;
      }
      nodes_.refuse(node, place + "/" + key, number == nullptr ? "nothing" : describe(*number),
                    "a whole number, 0 or more");
      return 0;
    };
    tables_.decode.strip_start = count("start");
    if (count("stop") != 0) nodes_.refuse(node, place + "/stop", "more than 0", "0");
  }

  const Node& root_;
  TokenizerNodes& nodes_;
  TokenizerTables& tables_;
  bool byte_level_ = false;
};

}  // namespace

void read_steps(const Node& root, TokenizerNodes& nodes, TokenizerTables& tables) {
  StepsReader(root, nodes, tables).read();
}

}  // namespace tessera
