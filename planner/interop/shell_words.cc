#include "planner/interop/shell_words.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "planner/interop/shell_reader.h"

namespace tessera {
namespace {

class Commands {
 public:
  Commands(std::string_view script, const std::string& file, Problems& problems)
      : in_(script, file, problems) {}

  std::vector<ShellCommand> run() {
    while (!in_.done()) step();
    end_command();
    if (in_.failed()) return {};
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = in_.peek();
    if (c == ' ' || c == '\t' || c == '\r') {
      in_.next();
    } else if (c == '\\' && in_.peek(1) == '\n') {
      in_.next(), in_.next();
    } else if (c == '\\' && in_.peek(1) == '\r' && in_.peek(2) == '\n') {
      in_.next(), in_.next(), in_.next();
    } else if (c == '#') {
      while (!in_.done() && in_.peek() != '\n') in_.next();
    } else if (c == '\n') {
      in_.next();
      end_command();
      skip_here_documents();
    } else if (c == ';' || c == '&' || c == '|') {
      in_.next();
      end_command();
    } else if (c == '(' || c == ')') {
      in_.next();
      end_command();
    } else if (c == '<' || c == '>') {
      redirection();
    } else if (command_.empty() && assignment()) {
      // taken
    } else {
      const std::vector<ShellWord> made = in_.words();
      for (const ShellWord& word : made) add_word(word);
    }
  }

  void add_word(const ShellWord& word) {
    static constexpr std::string_view kReserved[] = {
        "if", "then", "else", "elif",   "fi",    "do",       "done",    "while",
        "{",  "}",    "!",    "export", "local", "readonly", "declare", "until"};
    const bool reserved = command_.empty() && std::find(std::begin(kReserved), std::end(kReserved),
                                                        word.text) != std::end(kReserved);
    if (!reserved) command_.push_back(word);
  }

  void end_command() {
    if (!command_.empty()) commands_.push_back(std::move(command_));
    command_.clear();
  }

  // `< file`, `> file`, `2>&1`, `<<WORD`: the word is not an argument.
  void redirection() {
    const bool in = in_.peek() == '<';
    in_.next();
    if (in && in_.peek() == '<') {
      in_.next();
      if (in_.peek() == '<') {  // here-string
        in_.next();
        skip_blanks();
        in_.words();
        return;
      }
      const bool tabs = in_.peek() == '-';
      if (tabs) in_.next();
      skip_blanks();
      std::string end;
      for (const ShellWord& word : in_.words()) end += word.text;
      here_documents_.push_back({end, tabs});
      return;
    }
    if (in_.peek() == '>' || in_.peek() == '|') in_.next();
    if (in_.peek() == '&') in_.next();
    if (in_.peek() == '(') return in_.fail("process substitution", "a file after '<' or '>'");
    drop_descriptor();
    skip_blanks();
    if (in_.peek() != '\n' && !in_.done()) in_.words();
  }

  // `2` of `2>file` was read as a word.
  void drop_descriptor() {
    if (!command_.empty() && command_.back().text.size() == 1 &&
        std::isdigit(static_cast<unsigned char>(command_.back().text[0])) != 0 &&
        in_.before_redirection()) {
      command_.pop_back();
    }
  }

  void skip_blanks() {
    while (in_.peek() == ' ' || in_.peek() == '\t') in_.next();
  }

  void skip_here_documents() {
    for (const auto& [end, tabs] : here_documents_) {
      while (!in_.done()) {
        std::string line;
        while (!in_.done() && in_.peek() != '\n') line += in_.next();
        if (!in_.done()) in_.next();
        if (tabs) line.erase(0, line.find_first_not_of('\t'));
        if (line == end) break;
      }
    }
    here_documents_.clear();
  }

  // NAME=value, NAME+=value, NAME=(...), NAME[..]=...; true when one was read.
  bool assignment() {
    if (!starts_shell_name(in_.peek())) return false;
    std::string name;
    while (in_shell_name(in_.peek(name.size()))) name += in_.peek(name.size());
    const bool append = in_.peek(name.size()) == '+' && in_.peek(name.size() + 1) == '=';
    if (!append && in_.peek(name.size()) != '=') return false;
    for (std::size_t i = name.size() + (append ? 2 : 1); i > 0; --i) in_.next();
    ShellVariable value;
    if (in_.peek() == '(') {
      in_.next();
      value.array = true;
      array_items(value.items);
    } else {
      ShellWord whole{.line = in_.line()};
      for (const ShellWord& word : in_.words(true)) in_.join(whole, word);
      value.items = {whole};
    }
    ShellVariable& stored = in_.variables[name];
    if (append && value.array) {
      stored.array = true;
      stored.items.insert(stored.items.end(), value.items.begin(), value.items.end());
    } else if (append && !stored.items.empty()) {
      in_.join(stored.items[0], value.items[0]);
    } else {
      stored = std::move(value);
    }
    return true;
  }

  void array_items(std::vector<ShellWord>& items) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (c == ')') {
        in_.next();
        return;
      }
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        in_.next();
      } else if (c == '\\' && in_.peek(1) == '\n') {
        in_.next(), in_.next();
      } else if (c == '#') {
        while (!in_.done() && in_.peek() != '\n') in_.next();
      } else if (c == '(' || c == '<' || c == '>' || c == '|' || c == ';' || c == '&') {
        return in_.fail(std::string("'") + c + "' in an array", "words");
      } else {
        const std::vector<ShellWord> made = in_.words();
        items.insert(items.end(), made.begin(), made.end());
      }
    }
    if (!in_.failed()) in_.fail("an array that does not end", "')'");
  }

  ShellReader in_;
  std::vector<std::pair<std::string, bool>> here_documents_;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view script, const std::string& file,
                                         Problems& problems) {
  return Commands(script, file, problems).run();
}

}  // namespace tessera
