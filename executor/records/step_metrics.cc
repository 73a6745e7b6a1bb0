#include "executor/records/step_metrics.h"

#include <algorithm>

namespace tessera {

Metrics throughput_metrics(const Experience& experience,
                           const std::map<std::string, double>& timing, int gpus) {
  double tokens = 0, longest = 0, shortest = 0;
  for (const Sequence& sequence : experience.sequences) {
    const auto length = static_cast<double>(sequence.prompt.size() + sequence.response.size());
    longest = std::max(longest, length);
    shortest = tokens == 0 ? length : std::min(shortest, length);
    tokens += length;
  }
  Metrics metrics{{"perf/total_num_tokens", tokens}};
  if (!experience.sequences.empty()) {
    metrics["global_seqlen/mean"] = tokens / static_cast<double>(experience.sequences.size());
    metrics["global_seqlen/max"] = longest;
    metrics["global_seqlen/min"] = shortest;
  }
  const auto step = timing.find("timing_s/step");
  if (step != timing.end() && step->second > 0) {
    metrics["perf/time_per_step"] = step->second;
    metrics["perf/throughput"] = tokens / (step->second * gpus);
  }
  const auto responses = static_cast<double>(response_tokens(experience));
  for (const std::string phase : {"gen", "ref", "values", "adv", "update_critic", "update_actor"}) {
    const auto time = timing.find("timing_s/" + phase);
    const double work = phase == "gen" ? responses : tokens;
    if (time != timing.end() && work > 0) {
      metrics["timing_per_token_ms/" + phase] = time->second * 1e3 / work;
    }
  }
  return metrics;
}

}  // namespace tessera
