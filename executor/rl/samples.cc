#include "executor/rl/samples.h"

#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

/// One line being read; the first defect of each key becomes a Problem.
class LineReader {
 public:
  LineReader(const Json& line, std::string file, std::size_t number, Problems& problems)
      : line_(line), file_(std::move(file)), number_(number), problems_(problems) {}

  bool ok() const { return ok_; }

  void complain(const std::string& key, std::string found, std::string expected) {
    problems_.push_back(
        {file_, std::to_string(number_) + ":/" + key, std::move(found), std::move(expected), {}});
    ok_ = false;
  }

  template <class T>
  void integer(const char* key, T& into) {
    const Json* at = find(key, true);
    if (at == nullptr) return;
    if (const auto x = as_integer<T>(*at)) {
      into = *x;
    } else {
      complain(key, at->dump(), "an integer from 0");
    }
  }
  void number(const char* key, double& into) {
    const Json* at = find(key, true);
    if (at == nullptr) return;
    if (at->is_number()) {
      into = at->get<double>();
    } else {
      complain(key, at->dump(), "a number");
    }
  }
  void text(const char* key, std::string& into) {
    const Json* at = find(key, false);
    if (at == nullptr) return;
    if (at->is_string()) {
      into = at->get<std::string>();
    } else {
      complain(key, at->dump(), "a string");
    }
  }
  void boolean(const char* key, bool& into) {
    const Json* at = find(key, false);
    if (at == nullptr) return;
    if (at->is_boolean()) {
      into = at->get<bool>();
    } else {
      complain(key, at->dump(), "true or false");
    }
  }
  template <class T>
  void integers(const char* key, std::vector<T>& into, bool required) {
    const Json* at = find(key, required);
    if (at == nullptr) return;
    bool good = at->is_array();
    for (std::size_t i = 0; good && i < at->size(); ++i) {
      const auto x = as_integer<T>((*at)[i]);
      good = x.has_value();
      if (good) into.push_back(*x);
    }
    if (!good) complain(key, "something else", "a list of integers from 0");
  }
  void numbers(const char* key, std::vector<float>& into) {
    const Json* at = find(key, false);
    if (at == nullptr) return;
    bool good = at->is_array();
    for (std::size_t i = 0; good && i < at->size(); ++i) {
      good = (*at)[i].is_number();
      if (good) into.push_back((*at)[i].get<float>());
    }
    if (!good) complain(key, "something else", "a list of numbers");
  }

 private:
  const Json* find(const char* key, bool required) {
    const auto at = line_.find(key);
    if (at != line_.end()) return &*at;
    if (required) complain(key, "nothing", "this key");
    return nullptr;
  }
  template <class T>
  static std::optional<T> as_integer(const Json& json) {
    if (!json.is_number_integer()) return std::nullopt;
    const auto x = json.get<std::int64_t>();
    if (x < 0 || x > static_cast<std::int64_t>(std::numeric_limits<T>::max())) return std::nullopt;
    return static_cast<T>(x);
  }

  const Json& line_;
  std::string file_;
  std::size_t number_;
  Problems& problems_;
  bool ok_ = true;
};

void check_length(LineReader& reader, const char* key, std::size_t found, std::size_t expected) {
  if (found == 0 || found == expected) return;
  reader.complain(key, std::to_string(found) + " entries",
                  std::to_string(expected) + ", one per response id");
}

std::optional<std::pair<std::int64_t, Sequence>> read_line(const std::string& text,
                                                           const std::string& file,
                                                           std::size_t number, Problems& problems) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) {
    problems.push_back({file,
                        std::to_string(number),
                        line.is_discarded() ? "no JSON" : "no object",
                        "one JSON object per line",
                        {}});
    return std::nullopt;
  }
  LineReader reader(line, file, number, problems);
  std::int64_t step = 0;
  Sequence s;
  reader.integer("step", step);
  reader.integer("prompt_index", s.prompt_index);
  reader.integer("sample_index", s.sample_index);
  reader.text("uid", s.uid);
  reader.integers("prompt_ids", s.prompt, true);
  reader.integers("response_ids", s.response, true);
  reader.integers("response_mask", s.response_mask, false);
  reader.numbers("rollout_log_probs", s.rollout_log_prob);
  reader.integers("routed_experts", s.routed_experts, false);
  reader.boolean("finished", s.finished);
  reader.number("score", s.score);
  check_length(reader, "rollout_log_probs", s.rollout_log_prob.size(), s.response.size());
  check_length(reader, "response_mask", s.response_mask.size(), s.response.size());
  if (!reader.ok()) return std::nullopt;
  return std::pair(step, std::move(s));
}

}  // namespace

std::string sample_line(std::int64_t step, const Sequence& sequence, const SampleText& text,
                        bool experts) {
  Json line;
  line["input"] = text.input;
  line["output"] = text.output;
  line["gts"] = text.ground_truth;
  line["score"] = sequence.score;
  line["step"] = step;
  line["prompt_index"] = sequence.prompt_index;
  line["sample_index"] = sequence.sample_index;
  line["uid"] = sequence.uid;
  line["finished"] = sequence.finished;
  line["prompt_ids"] = sequence.prompt;
  line["response_ids"] = sequence.response;
  if (!sequence.response_mask.empty()) line["response_mask"] = sequence.response_mask;
  line["rollout_log_probs"] = sequence.rollout_log_prob;
  if (experts) line["routed_experts"] = sequence.routed_experts;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Experience> read_samples(std::istream& in, const std::string& file,
                                     Problems& problems) {
  std::map<std::int64_t, Experience> steps;
  std::set<std::tuple<std::int64_t, std::int32_t, std::int32_t>> seen;
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto read = read_line(text, file, number, problems);
    if (!read) continue;
    auto& [step, sequence] = *read;
    if (!seen.emplace(step, sequence.prompt_index, sequence.sample_index).second) {
      problems.push_back({file,
                          std::to_string(number),
                          "step, prompt_index and sample_index of an earlier line",
                          "each sample once",
                          {}});
      continue;
    }
    steps[step].step = step;
    steps[step].sequences.push_back(std::move(sequence));
  }
  std::vector<Experience> experiences;
  for (auto& [step, experience] : steps) {
    sort_sequences(experience);
    experiences.push_back(std::move(experience));
  }
  return experiences;
}

std::vector<Experience> read_samples(const std::filesystem::path& file, Problems& problems) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file, error);  // a pipe would be waited for
  std::ifstream in;
  if (regular) in.open(file);
  if (!in.is_open()) {
    problems.push_back({file.string(), "", "no readable file", "the samples.jsonl of a run", {}});
    return {};
  }
  return read_samples(in, file.string(), problems);
}

}  // namespace tessera
