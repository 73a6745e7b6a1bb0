// The text of a shell script, word by word: quotes, escapes and expansions.
//
// Words are read with the variables that the script has set so far. What only a run would tell
// (command substitution, positional arguments, unset variables) is marked in the word. The first
// problem ends the reading. One script, one object, one thread.
#pragma once

#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/shell/shell_words.h"

namespace tessera {

inline bool starts_shell_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
inline bool in_shell_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct ShellVariable {
  std::vector<ShellWord> items;  // one for a scalar
  bool array = false;
};

class ShellReader {
 public:
  /// All three must outlive the reader.
  ShellReader(std::string_view script, const std::string& file, Problems& problems)
      : text_(script), file_(file), problems_(problems) {}

  std::map<std::string, ShellVariable> variables;
  std::vector<std::string> assumed;  // a sentence for each word that a run might give otherwise

  bool done() const { return at_ >= text_.size() || failed_; }
  bool failed() const { return failed_; }
  /// "((...))" at the place reached: its value, and the reading goes on behind it.
  std::optional<std::int64_t> arithmetic_value();
  int line() const { return line_; }
  const std::string& file() const { return file_; }
  /// The character so far ahead, '\0' behind the end.
  char peek(std::size_t ahead = 0) const;
  /// Precondition: not at the end.
  char next();

  /// One word as it is written; several where it holds "${array[@]}" or an expansion with blanks
  /// outside of quotes, none where nothing is left of it. `assigned`: a value, which may be empty
  /// and is not split.
  std::vector<ShellWord> words(bool assigned = false);
  /// True when a redirection follows the last word without a blank: "2" of "2>file".
  bool before_redirection() const { return descriptor_end_; }

  /// Appends text to a word, within 1 MiB for all words of the script.
  void append(ShellWord& word, std::string_view text);
  void join(ShellWord& word, const ShellWord& other);

  /// The variables as they are, within 16 MiB for all copies of the script.
  std::map<std::string, ShellVariable> copied_variables();

  /// Reports the first problem, at the line reached.
  void fail(std::string found, std::string expected);

 private:
  void take(ShellWord& word);  // the next character as it is
  /// The next character, or the expansion that it begins.
  void expanded(std::vector<ShellWord>& made);
  void single_quoted(ShellWord& word);
  void double_quoted(std::vector<ShellWord>& made);
  void backquoted(ShellWord& word);
  void dollar(std::vector<ShellWord>& made);
  void arithmetic(ShellWord& word, std::size_t begin);
  void substitution(ShellWord& word, std::size_t begin);
  /// What follows the operator of "${name:-...}", with its "}"; `quoted`: some of it is in quotes.
  ShellWord alternative(bool& quoted);
  void braces(std::vector<ShellWord>& made);
  void skip_braces(ShellWord& word, std::size_t begin);
  void expand(std::vector<ShellWord>& made, const std::string& name);
  void split(std::vector<ShellWord>& made, const ShellWord& value);
  void expand_array(std::vector<ShellWord>& made, const std::string& name);

  std::string_view text_;
  const std::string& file_;
  Problems& problems_;
  std::size_t at_ = 0, total_ = 0, copied_ = 0;
  int line_ = 1, depth_ = 0;
  int whole_ = 0;  // > 0: within quotes or an assignment, where expansions are not split
  bool failed_ = false, descriptor_end_ = false, empty_expansion_ = false;
};

}  // namespace tessera
