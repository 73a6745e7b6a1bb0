#include "planner/interop/shell/shell_words.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/interop/shell/shell_outcome.h"
#include "planner/interop/shell/shell_reader.h"

namespace tessera {
namespace {

// One `if`, `case` or group in braces that has begun.
struct Branch {
  enum class Kind { condition, choice, group } kind = Kind::group;
  bool outer = true;       // what stands around it is read
  bool active = true;      // what stands here is read
  bool decided = false;    // a branch before is known to be taken
  bool patterns = false;   // of a choice: the next thing is a pattern
  ShellWord subject;       // of a choice
  int line = 0;            // where it begins
  bool guessed = false;    // only a run would tell whether this branch is taken
  bool defaulted = false;  // `else` was reached
  bool gpus = false;       // the branch taken names GPUs, its word is not known
  std::string unknown;     // what a run would tell
  std::optional<std::map<std::string, ShellVariable>> before;  // where a branch is guessed
  bool assigns = false;                                        // a guessed branch does
  std::optional<bool> status;                                  // of the last command before
};

class Commands {
 public:
  Commands(std::string_view script, const std::string& file, Problems& problems)
      : in_(script, file, problems) {}

  std::vector<ShellCommand> run(std::vector<std::string>* notes) {
    while (!in_.done()) {
      const bool read = reads();
      const std::size_t assumed = in_.assumed.size();
      step();
      if (!read) in_.assumed.resize(std::min(assumed, in_.assumed.size()));
    }
    end_command();
    if (in_.failed()) return {};
    if (notes != nullptr) {
      std::move(in_.assumed.begin(), in_.assumed.end(), std::back_inserter(*notes));
      std::move(notes_.begin(), notes_.end(), std::back_inserter(*notes));
    }
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = in_.peek();
    if (!branches_.empty() && branches_.back().patterns) return pattern();
    if (in_test()) return test_word();
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
      separator();
    } else if (c == '(' && in_.peek(1) == '(' && command_.empty()) {
      const auto value = in_.arithmetic_value();
      command_.push_back({.text = !value ? "((" : *value != 0 ? "true" : "false"});
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

  // `;`, `;;`, `&`, `&&`, `|` or `||`.
  void separator() {
    const char c = in_.next();
    const bool two = in_.peek() == c;
    if (two) in_.next();
    end_command();
    if (c == ';' && two && !branches_.empty() && branches_.back().kind == Branch::Kind::choice) {
      branches_.back().patterns = true;
    }
    if (two && c == '&') skip_ = status_.has_value() && !*status_;
    if (two && c == '|') skip_ = status_.has_value() && *status_;
  }

  // Within [[ ... ]] the operators are words.
  bool in_test() const {
    return !command_.empty() && command_[0].text == "[[" && command_.back().text != "]]" &&
           in_.peek() != '\n';
  }
  void test_word() {
    const char c = in_.peek();
    if (c == ' ' || c == '\t' || c == '\r') {
      in_.next();
    } else if (c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>' || c == ';') {
      std::string text(1, in_.next());
      if ((c == '&' || c == '|') && in_.peek() == c) text += in_.next();
      command_.push_back({.text = text, .line = in_.line()});
    } else {
      for (ShellWord& word : in_.words()) command_.push_back(std::move(word));
    }
  }

  bool reads() const { return !skip_ && (branches_.empty() || branches_.back().active); }

  void open(Branch::Kind kind) {
    Branch branch;
    branch.kind = kind;
    branch.outer = branch.active = reads();
    branch.line = in_.line();
    branch.status = status_;
    branches_.push_back(std::move(branch));
    skip_ = false;
    status_ = true;
  }
  void close(Branch::Kind kind) {
    if (branches_.empty() || branches_.back().kind != kind) return;
    Branch& branch = branches_.back();
    leave_guess(branch);
    if (branch.assigns || branch.gpus) {
      const bool chosen = branch.decided || branch.defaulted;
      notes_.push_back(in_.file() + ":" + std::to_string(branch.line) + ": only a run tells " +
                       branch.unknown + ", which decides a branch here: " +
                       (branch.gpus ? "that of GPUs is taken."
                        : chosen    ? "the default one is taken."
                                    : "none is taken."));
    }
    if (kind != Branch::Kind::group) {
      status_.reset();
    } else if (!branch.outer) {
      status_ = branch.status;
    }
    branches_.pop_back();
  }
  /// What follows may be another branch or the end: variables are those before a guessed one.
  void leave_guess(Branch& branch) {
    if (branch.guessed && branch.before) in_.variables = *branch.before;
    branch.guessed = false;
  }
  void guess(Branch& branch) {
    branch.guessed = true;
    if (!branch.before) branch.before = in_.copied_variables();
  }
  void then() {
    Branch& branch = branches_.back();
    if (branch.active && !status_) {
      const ShellCommand condition = commands_.empty() ? ShellCommand{} : commands_.back();
      branch.unknown = what_a_run_tells(condition);
      branch.gpus = branch.decided = asks_for_gpus(condition);
      if (!branch.gpus) guess(branch);
      return;
    }
    branch.active = branch.active && status_.value_or(false);
    branch.decided = branch.decided || branch.active;
  }
  void otherwise(bool last) {
    Branch& branch = branches_.back();
    leave_guess(branch);
    branch.active = branch.outer && !branch.decided;
    branch.defaulted = last;
    status_ = true;
  }

  // `case WORD in`
  void choice() {
    skip_blanks();
    ShellWord subject{.line = in_.line()};
    for (const ShellWord& word : in_.words(true)) in_.join(subject, word);
    open(Branch::Kind::choice);
    branches_.back().subject = std::move(subject);
    branches_.back().active = false;
    while (!in_.done() && std::isspace(static_cast<unsigned char>(in_.peek())) != 0) in_.next();
    in_.words();
    branches_.back().patterns = true;
  }

  // `a | b)` and what precedes it, or `esac`.
  void pattern() {
    const char c = in_.peek();
    if (c == '#') {
      while (!in_.done() && in_.peek() != '\n') in_.next();
      return;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '(') {
      in_.next();
      return;
    }
    Branch& branch = branches_.back();
    leave_guess(branch);
    std::optional<bool> matches = false;
    bool gpus = false;
    while (!in_.done()) {
      skip_blanks();
      ShellWord word{.line = in_.line()};
      for (const ShellWord& part : in_.words()) in_.join(word, part);
      if (word.text == "esac") return close(Branch::Kind::choice);
      const auto one = shell_matches(word, branch.subject);
      if (!matches.value_or(true)) matches = one;
      gpus = gpus || (!one && names_gpus(word.text));
      skip_blanks();
      if (in_.done()) return;
      if (in_.next() != '|') break;
    }
    branch.patterns = false;
    branch.active = branch.outer && !branch.decided && matches.value_or(true);
    if (branch.active && !matches) {
      branch.unknown = branch.subject.known ? "a pattern" : branch.subject.unknown;
      branch.gpus = gpus;
      if (gpus) matches = true;
      if (!gpus) guess(branch);
    }
    branch.decided = branch.decided || (branch.active && matches.has_value());
    skip_ = false;
  }

  /// True for a word that is the shell's own here.
  bool reserved(const std::string& text) {
    const bool inside = !branches_.empty() && branches_.back().kind == Branch::Kind::condition;
    if (text == "if") return open(Branch::Kind::condition), true;
    if (text == "case") return choice(), true;
    if (text == "{") return open(Branch::Kind::group), true;
    if (text == "}") return close(Branch::Kind::group), true;
    if (text == "fi") return close(Branch::Kind::condition), true;
    if (text == "esac") return close(Branch::Kind::choice), true;
    if (text == "then") return inside ? then() : void(), true;
    if (text == "else" || text == "elif") return inside ? otherwise(text == "else") : void(), true;
    static constexpr std::string_view kPlain[] = {"do",     "done",  "while",    "until",
                                                  "export", "local", "readonly", "declare"};
    return std::find(std::begin(kPlain), std::end(kPlain), text) != std::end(kPlain);
  }

  void add_word(const ShellWord& word) {
    if (!command_.empty() || !reserved(word.text)) command_.push_back(word);
  }

  void end_command() {
    if (command_.empty() && !assigned_) return;
    if (reads()) {
      status_ = command_.empty() ? assigned_status_ : shell_outcome(command_);
      if (!command_.empty()) commands_.push_back(std::move(command_));
    }
    command_.clear();
    assigned_ = skip_ = false;
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
    assigned_ = true;
    assigned_status_ = true;
    if (!value.items.empty() && !value.items[0].known) assigned_status_.reset();
    if (!reads()) return true;
    for (Branch& branch : branches_) branch.assigns = branch.assigns || branch.guessed;
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
  std::vector<Branch> branches_;
  std::optional<bool> status_ = true;  // of the last command; nullopt = only a run would tell
  bool skip_ = false;                  // the command that && or || rules out
  bool assigned_ = false;              // since the last command
  std::optional<bool> assigned_status_ = true;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
  std::vector<std::string> notes_;  // of branches
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view script, const std::string& file,
                                         Problems& problems, std::vector<std::string>* notes) {
  return Commands(script, file, problems).run(notes);
}

}  // namespace tessera
