#include "executor/rewards/program_words.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

constexpr std::size_t kMostKinds = 8;       // of a round that are told
constexpr std::size_t kMostTracebacks = 8;  // of a run

void add_failure(ProgramWords& words, ProgramWords::Failure failure) {
  const bool known = std::ranges::any_of(
      words.failures, [&](const auto& other) { return other.kind == failure.kind; });
  if (!known) words.failures.push_back(std::move(failure));
}

void append(std::string& out, const std::string& field) { out.append(field).push_back('\0'); }

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace

void add_words(ProgramWords& words, const std::string& function, const RewardAnswer& answer) {
  if (!answer.left_out.empty()) words.left_out.insert(function + ": " + answer.left_out);
  if (answer.score) return;
  add_failure(words, {.kind = function + ": " + answer.kind,
                      .text = function + ": " + answer.failure,
                      .traceback = answer.traceback});
}

std::string packed_words(const ProgramWords& words) {
  std::string out;
  for (const ProgramWords::Failure& failure : words.failures) {
    append(out, failure.kind);
    append(out, failure.text);
    append(out, failure.traceback);
  }
  for (const std::string& line : words.left_out) {  // without a kind
    append(out, "");
    append(out, line);
    append(out, "");
  }
  return out;
}

ProgramWords words_of_all(const std::vector<std::string>& packed) {
  ProgramWords words;
  for (const std::string& block : packed) {
    std::size_t at = 0;
    const auto next = [&] {
      std::string field = block.c_str() + at;
      at += field.size() + 1;
      return field;
    };
    while (at < block.size()) {
      std::string kind = next(), text = next(), traceback = next();
      if (kind.empty()) {
        words.left_out.insert(std::move(text));
      } else {
        add_failure(words, {std::move(kind), std::move(text), std::move(traceback)});
      }
    }
  }
  return words;
}

std::vector<std::string> lines_of(const ProgramWords& words, std::size_t failed,
                                  std::size_t responses, std::set<std::string>& told) {
  std::vector<std::string> lines;
  if (failed > 0) {
    const std::string why = words.failures.empty() ? "not asked" : words.failures.front().text;
    lines.push_back(std::to_string(failed) + " of " + std::to_string(responses) +
                    " responses have no score (" + why + ")");
  }
  for (std::size_t i = 0; i < words.failures.size(); ++i) {
    const ProgramWords::Failure& failure = words.failures[i];
    if (i > 0 && i < kMostKinds) lines.push_back("some of them: " + failure.text);
    if (i == kMostKinds) {
      lines.push_back("and " + std::to_string(words.failures.size() - i) +
                      " more kinds of failure");
    }
    if (failure.traceback.empty() || told.size() >= kMostTracebacks) continue;
    if (told.insert(failure.kind).second) {
      lines.push_back("the first " + failure.kind + "\n" + indented(failure.traceback));
    }
  }
  for (const std::string& line : words.left_out) {
    if (told.insert(line).second) lines.push_back(line);
  }
  return lines;
}

}  // namespace tessera
