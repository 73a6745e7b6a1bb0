// What reward programs say beside scores: why responses have none, and what was not taken.
//
// Told once for each kind of failure. Plain values; any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/rewards/reward_scorer.h"

namespace tessera {

struct ProgramWords {
  /// All failures of one kind: the words of the first of them.
  struct Failure {
    std::string kind;       // the function and, of an exception, where it is raised and its type
    std::string text;       // one line
    std::string traceback;  // of an exception, several lines; may be empty
  };
  std::vector<Failure> failures;   // in the order in which they were met
  std::set<std::string> left_out;  // lines
};

/// Adds what an answer of the function of this name says.
void add_words(ProgramWords& words, const std::string& function, const RewardAnswer& answer);

/// As ranks exchange them, and what several ranks say in rank order.
std::string packed_words(const ProgramWords& words);
ProgramWords words_of_all(const std::vector<std::string>& packed);

/// The lines that a run tells of a round in which `failed` of `responses` have no score: one a kind
/// of failure (eight at most), and what is new since the run began: tracebacks and what was left
/// out. `told` is what the run has told of these.
std::vector<std::string> lines_of(const ProgramWords& words, std::size_t failed,
                                  std::size_t responses, std::set<std::string>& told);

}  // namespace tessera
