#include "executor/run/step_metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera {
namespace {

void add_summary(Metrics& metrics, const std::string& name, const std::vector<double>& values) {
  if (values.empty()) return;
  double sum = 0;
  for (const double value : values) sum += value;
  metrics[name + "/mean"] = sum / static_cast<double>(values.size());
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

/// Valid entries of a per-token field; empty when any sequence lacks it.
std::vector<double> valid_entries(const Experience& experience,
                                  std::vector<float> Sequence::*field) {
  std::vector<double> values;
  for (const Sequence& sequence : experience.sequences) {
    const std::vector<float>& row = sequence.*field;
    if (row.size() != sequence.response.size()) return {};
    for (size_t t = 0; t < row.size(); ++t) {
      if (sequence.response_mask.empty() || sequence.response_mask[t] != 0) {
        values.push_back(row[t]);
      }
    }
  }
  return values;
}

std::vector<double> per_sequence(const Experience& experience, auto&& of) {
  std::vector<double> values;
  values.reserve(experience.sequences.size());
  for (const Sequence& sequence : experience.sequences) values.push_back(of(sequence));
  return values;
}

void add_probability_gap(Metrics& metrics, const Experience& experience) {
  const std::vector<double> sampled = valid_entries(experience, &Sequence::rollout_log_prob);
  const std::vector<double> computed = valid_entries(experience, &Sequence::old_log_prob);
  if (sampled.empty() || sampled.size() != computed.size()) return;
  double sum = 0, largest = 0;
  for (size_t i = 0; i < sampled.size(); ++i) {
    const double gap = std::abs(std::exp(sampled[i]) - std::exp(computed[i]));
    sum += gap;
    largest = std::max(largest, gap);
  }
  metrics["training/rollout_probs_diff_mean"] = sum / static_cast<double>(sampled.size());
  metrics["training/rollout_probs_diff_max"] = largest;
}

std::int64_t total_tokens(const Experience& experience) {
  std::int64_t tokens = 0;
  for (const Sequence& s : experience.sequences) {
    tokens += static_cast<std::int64_t>(s.prompt.size() + s.response.size());
  }
  return tokens;
}

}  // namespace

Metrics experience_metrics(const Experience& experience, std::int64_t max_response) {
  Metrics metrics;
  const auto size = [](const auto& list) { return static_cast<double>(list.size()); };
  add_summary(metrics, "critic/score",
              per_sequence(experience, [](const Sequence& s) { return s.score; }));
  add_summary(metrics, "critic/rewards", per_sequence(experience, [](const Sequence& s) {
                double sum = 0;
                for (const float reward : s.token_rewards) sum += reward;
                return sum;
              }));
  add_summary(metrics, "critic/advantages", valid_entries(experience, &Sequence::advantages));
  add_summary(metrics, "critic/returns", valid_entries(experience, &Sequence::returns));
  add_summary(metrics, "critic/values", valid_entries(experience, &Sequence::values));
  add_summary(metrics, "response_length",
              per_sequence(experience, [&](const Sequence& s) { return size(s.response); }));
  add_summary(metrics, "prompt_length",
              per_sequence(experience, [&](const Sequence& s) { return size(s.prompt); }));
  add_summary(metrics, "global_seqlen", per_sequence(experience, [&](const Sequence& s) {
                return size(s.prompt) + size(s.response);
              }));
  const std::vector<double> clipped = per_sequence(experience, [&](const Sequence& s) {
    return static_cast<std::int64_t>(s.response.size()) >= max_response && !s.finished ? 1.0 : 0.0;
  });
  double clipped_sum = 0;
  for (const double one : clipped) clipped_sum += one;
  if (!clipped.empty()) {
    metrics["response_length/clip_ratio"] = clipped_sum / static_cast<double>(clipped.size());
  }
  add_probability_gap(metrics, experience);
  return metrics;
}

Metrics throughput_metrics(const Experience& experience,
                           const std::map<std::string, double>& timing, int gpus) {
  Metrics metrics;
  const auto tokens = static_cast<double>(total_tokens(experience));
  metrics["perf/total_num_tokens"] = tokens;
  const auto step = timing.find("timing_s/step");
  if (step != timing.end() && step->second > 0) {
    metrics["perf/time_per_step"] = step->second;
    metrics["perf/throughput"] = tokens / (step->second * gpus);
  }
  const auto responses = static_cast<double>(response_tokens(experience));
  for (const char* phase : {"gen", "ref", "values", "adv", "update_critic", "update_actor"}) {
    const auto time = timing.find(std::string("timing_s/") + phase);
    const double of = std::string(phase) == "gen" ? responses : tokens;
    if (time != timing.end() && of > 0) {
      metrics[std::string("timing_per_token_ms/") + phase] = time->second * 1e3 / of;
    }
  }
  return metrics;
}

}  // namespace tessera
