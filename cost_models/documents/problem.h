// Faults of an input, and how the program ends because of them.
//
// Readers never throw for user input: they return what they could read and append every Problem of
// the file to a list. Whoever owns the boundary (a main function, a GUI action) throws or shows one
// Error with all of them. Plain values, free to copy between threads.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Process exit codes; those from 64 to 78 mean what sysexits.h says.
enum class ExitCode : int {
  ok = 0,
  check_failed = 1,
  infeasible = 2,
  usage = 64,
  bad_input = 65,
  missing = 69,
  internal = 70,
  io = 74,
  peer_lost = 75,
  stopped = 130,
  requeue = 138,  // 128 + SIGUSR1: saved, and to be started again
};

/// One defect of one input. `place` is a line:column, a JSON pointer or a key path.
struct Problem {
  std::string file;
  std::string place;
  std::string found;
  std::string expected;
  std::string hint;  // may be empty

  bool operator==(const Problem&) const = default;
};

/// "file:place: found X, expected Y (hint)".
std::string to_string(const Problem& problem);

/// What ends a command and is told to its user; all else that ends one is a lost peer or a defect.
class Error : public std::exception {
 public:
  Error(ExitCode code, Problems problems);
  /// `usage` where one of them is an option's (its file is "--fix" or the like), else `bad_input`.
  explicit Error(Problems problems);
  /// An error that concerns no file: one Problem whose `found` is the message.
  Error(ExitCode code, std::string message);

  ExitCode code() const { return code_; }
  const Problems& problems() const { return problems_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ExitCode code_;
  Problems problems_;
  std::string text_;
};

/// "did you mean 'x'?" for the nearest of `known` within edit distance 3, else for the shortest
/// that has all words of `word` ("a_size" of "a_parallel_size"), or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace tessera
