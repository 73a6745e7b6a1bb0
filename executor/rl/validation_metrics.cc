#include "executor/rl/validation_metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace tessera {
namespace {

constexpr std::size_t kDraws = 1000;
constexpr std::uint32_t kSeed = 42;

/// Answers of one prompt, in the order of the samples.
struct Answers {
  std::vector<const ValidationSample*> samples;
};

/// Indices that numpy.random.seed(42); numpy.random.choice(count, (1000, size)) draws: 32-bit
/// numbers of MT19937, masked to the bits of count - 1, those above it thrown away.
std::vector<std::size_t> drawn_indices(std::size_t count, std::size_t size) {
  std::vector<std::size_t> indices(kDraws * size, 0);
  const auto largest = static_cast<std::uint32_t>(count - 1);
  if (largest == 0) return indices;
  const auto mask = static_cast<std::uint32_t>(std::bit_ceil(std::uint64_t{largest} + 1) - 1);
  std::mt19937 generator(kSeed);
  for (std::size_t& index : indices) {
    std::uint32_t value = 0;
    do {
      value = static_cast<std::uint32_t>(generator()) & mask;
    } while (value > largest);
    index = value;
  }
  return indices;
}

double mean_of(View values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Of all values, not of a sample (numpy's std).
double deviation_of(View values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// 2, 4, 8, ... below `count`, then `count`; none for a single answer.
std::vector<std::size_t> subset_sizes(std::size_t count) {
  std::vector<std::size_t> sizes;
  if (count <= 1) return sizes;
  for (std::size_t n = 2; n < count; n *= 2) sizes.push_back(n);
  sizes.push_back(count);
  return sizes;
}

/// The value of the first answer that most of the drawn ones equal; among equal counts the answer
/// that was drawn first.
double majority(std::span<const std::size_t> drawn, View values,
                std::span<const std::string> answers) {
  std::vector<std::pair<std::size_t, std::size_t>> counts;  // first place drawn, how often
  for (const std::size_t index : drawn) {
    const auto known = std::ranges::find_if(
        counts, [&](const auto& entry) { return answers[entry.first] == answers[index]; });
    known == counts.end() ? void(counts.emplace_back(index, 1)) : void(++known->second);
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
  return values[most->first];
}

void add_draws(const std::string& name, View values, Metrics& metrics) {
  metrics[name + "/mean"] = mean_of(values);
  metrics[name + "/std"] = deviation_of(values);
}

/// best@size, worst@size and, where all answers are known, maj@size of one prompt.
void add_subsets(View values, std::span<const std::string> answers, std::size_t size,
                 Metrics& metrics) {
  const std::vector<std::size_t> indices = drawn_indices(values.size(), size);
  Array best, worst, agreed;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    const auto drawn = std::span(indices).subspan(draw * size, size);
    const auto value = [&](std::size_t index) { return values[index]; };
    best.push_back(value(*std::ranges::max_element(drawn, {}, value)));
    worst.push_back(value(*std::ranges::min_element(drawn, {}, value)));
    if (!answers.empty()) agreed.push_back(majority(drawn, values, answers));
  }
  const std::string at = "@" + std::to_string(size);
  add_draws("best" + at, best, metrics);
  add_draws("worst" + at, worst, metrics);
  if (!answers.empty()) add_draws("maj" + at, agreed, metrics);
}

/// Metrics of one prompt and variable; none where no answer has the variable.
Metrics prompt_metrics(const Answers& prompt, const std::string& variable) {
  Array values;
  std::vector<std::string> answers;
  for (const ValidationSample* sample : prompt.samples) {
    const auto found = sample->values.find(variable);
    if (found != sample->values.end()) values.push_back(found->second);
    if (sample->answer) answers.push_back(*sample->answer);
  }
  Metrics metrics;
  if (values.empty()) return metrics;
  const bool voted =
      values.size() == prompt.samples.size() && answers.size() == prompt.samples.size();
  if (!voted) answers.clear();
  const std::string count = std::to_string(values.size());
  metrics["mean@" + count] = mean_of(values);
  if (values.size() > 1) metrics["std@" + count] = deviation_of(values);
  for (const std::size_t size : subset_sizes(values.size())) {
    add_subsets(values, answers, size, metrics);
  }
  return metrics;
}

/// The n of "best@n/mean".
int answers_in(const std::string& name) { return std::atoi(name.c_str() + name.find('@') + 1); }

bool is_main(const std::string& name, int most) {
  const bool kind = name.starts_with("mean") || name.starts_with("maj") || name.starts_with("best");
  // As verl compares: the text of the number is looked for, so that @16 has "@1" in it.
  return kind && name.find("@" + std::to_string(most)) != std::string::npos;
}

}  // namespace

std::string validation_line(std::int64_t step, const Metrics& metrics) {
  std::string line = "[Validation] step " + std::to_string(step) + ":";
  const char* separator = " ";
  for (const auto& [name, value] : metrics) {
    if (!name.starts_with("val-core/") || name.ends_with("/std")) continue;
    char number[32];
    std::snprintf(number, sizeof number, " %.4g", value);
    line += separator + name + number;
    separator = ", ";
  }
  return line;
}

Metrics validation_metrics(std::span<const ValidationSample> samples) {
  std::map<std::string, std::map<std::string, Answers>> sources;
  std::map<std::string, std::map<std::string, bool>> variables;  // by source
  for (const ValidationSample& sample : samples) {
    sources[sample.data_source][sample.uid].samples.push_back(&sample);
    for (const auto& [name, value] : sample.values) variables[sample.data_source][name] = true;
  }
  Metrics metrics;
  for (const auto& [source, prompts] : sources) {
    const std::string main = variables[source].contains("acc") ? "acc" : "reward";
    for (const auto& [variable, known] : variables[source]) {
      std::map<std::string, Array> by_name;
      int most = 0;
      for (const auto& [uid, prompt] : prompts) {
        for (const auto& [name, value] : prompt_metrics(prompt, variable)) {
          by_name[name].push_back(value);
          most = std::max(most, answers_in(name));
        }
      }
      for (const auto& [name, values] : by_name) {
        const bool core = variable == main && is_main(name, most);
        metrics[(core ? "val-core/" : "val-aux/") + source + "/" + variable + "/" + name] =
            mean_of(values);
      }
    }
  }
  return metrics;
}

}  // namespace tessera
