#include "cost_models/documents/problem.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

std::string joined(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += to_string(problem);
  }
  return text;
}

bool of_options(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& problem) { return problem.file.starts_with("--"); });
}

/// Insertions, deletions and substitutions between two words where they are fewer than `most`, else
/// some number of at least `most`.
size_t edit_distance(std::string_view a, std::string_view b, size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= most) return most;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0], least = i;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      least = std::min(least, row[j]);
    }
    if (least >= most) return most;  // rows never fall again
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text = problem.file;
  if (!problem.place.empty()) text += (text.empty() ? "" : ":") + problem.place;
  if (!text.empty()) text += ": ";
  text += problem.expected.empty() ? problem.found
                                   : "found " + problem.found + ", expected " + problem.expected;
  if (!problem.hint.empty()) text += " (" + problem.hint + ")";
  return text;
}

Error::Error(ExitCode code, Problems problems)
    : code_(code), problems_(std::move(problems)), text_(joined(problems_)) {}

Error::Error(Problems problems)
    : Error(of_options(problems) ? ExitCode::usage : ExitCode::bad_input, problems) {}

Error::Error(ExitCode code, std::string message)
    : Error(code, Problems{Problem{.found = std::move(message)}}) {}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string* best = nullptr;
  size_t best_distance = std::min<size_t>(4, word.size() / 2 + 1);
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate, best_distance);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? std::string{} : "did you mean '" + *best + "'?";
}

void invariant_broken(const char* what, const char* file, int line) {
  std::fprintf(stderr, "tessera: internal error: %s does not hold (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace tessera
