#include "cost_models/documents/problem.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/spelling/edit_distance.h"

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

// What a file says, as a message shows it: a key of a megabyte is cut.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 1000;
  return printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "");
}

// "ulysses_parallel_size" has three words.
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("_-."), name.size());
    if (end > 0) words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

bool has_in_order(const std::vector<std::string_view>& whole,
                  const std::vector<std::string_view>& words) {
  auto from = whole.begin();
  for (const std::string_view word : words) {
    from = std::find(from, whole.end(), word);
    if (from == whole.end()) return false;
    ++from;
  }
  return true;
}

// The known name with the fewest words that has all of these, for names of which words were left
// out; few words have to be most of it.
const std::string* with_words(std::string_view word, std::span<const std::string> known) {
  const std::vector<std::string_view> words = words_of(word);
  if (words.size() < 2) return nullptr;
  const std::string* best = nullptr;
  std::size_t fewest = words.size() < 3 ? words.size() + 3 : word.npos;
  for (const std::string& candidate : known) {
    const std::vector<std::string_view> whole = words_of(candidate);
    if (whole.size() >= fewest || !has_in_order(whole, words)) continue;
    fewest = whole.size();
    best = &candidate;
  }
  return best;
}

bool of_options(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& problem) { return problem.file.starts_with("--"); });
}

}  // namespace

std::string to_string(const Problem& problem) {
  // A message of our own, which may have lines; all else may quote a file.
  const bool message = problem.file.empty() && problem.place.empty() && problem.expected.empty();
  std::string text = printable(problem.file);
  if (!problem.place.empty()) text += (text.empty() ? "" : ":") + in_quotes(problem.place);
  if (!text.empty()) text += ": ";
  const std::string found =
      message ? printable(problem.found, LineEnds::kept) : in_quotes(problem.found);
  text += problem.expected.empty() ? found
                                   : "found " + found + ", expected " + printable(problem.expected);
  if (!problem.hint.empty()) text += " (" + printable(problem.hint) + ")";
  return text;
}

Error::Error(ExitCode code, Problems problems)
    : code_(code), problems_(std::move(problems)), text_(joined(problems_)) {}

Error::Error(Problems problems)
    : code_(of_options(problems) ? ExitCode::usage : ExitCode::bad_input),
      problems_(std::move(problems)),
      text_(joined(problems_)) {}

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
  if (best == nullptr) best = with_words(word, known);
  return best == nullptr ? std::string{} : "did you mean '" + *best + "'?";
}

void invariant_broken(const char* what, const char* file, int line) {
  std::fprintf(stderr, "tessera: internal error: %s does not hold (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace tessera
