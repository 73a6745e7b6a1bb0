// The chat template of a model folder: how messages become the text that the model is given.
//
// The template is Jinja and is run as transformers runs it (utils/chat_template_utils.py:
// trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson, raise_exception,
// strftime_now); a construct, filter, test or method that is not known here is refused by name.
// Immutable once read; any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "executor/data/prompts.h"
#include "executor/templates/jinja_syntax.h"

namespace tessera {

class ChatTemplate {
 public:
  /// `folder`/chat_template.jinja, else chat_template of tokenizer_config.json (of several the one
  /// named default), with the special tokens that the latter names. A folder without one gives a
  /// template that is empty(). nullopt when anything was appended to `problems`.
  static std::optional<ChatTemplate> open(const std::filesystem::path& folder, Problems& problems);
  static std::optional<ChatTemplate> parse(std::string_view source, const std::string& file,
                                           JinjaValue::Map special_tokens, Problems& problems);

  bool empty() const { return body_ == nullptr; }

  /// The text of these messages, with what opens the model's answer behind them
  /// (add_generation_prompt). `options` are further variables of the template, a map. Throws
  /// TemplateError with the template's own message, or with what it cannot do.
  std::string render(std::span<const ChatMessage> messages,
                     const JinjaValue::Map& options = {}) const;

 private:
  std::shared_ptr<const JinjaBody> body_;
  JinjaValue::Map special_tokens_;
};

}  // namespace tessera
