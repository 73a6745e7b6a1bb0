#include "executor/rollout/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::string place_of(std::int64_t step, std::int32_t prompt, std::int32_t sample) {
  return "step " + std::to_string(step) + ", prompt_index " + std::to_string(prompt) +
         ", sample_index " + std::to_string(sample);
}

}  // namespace

std::vector<Sequence> replay(const Experience& recorded, std::span<const TokenPrompt> prompts,
                             const std::string& file, Problems& problems) {
  std::map<std::pair<std::int32_t, std::int32_t>, const Sequence*> known;
  for (const Sequence& s : recorded.sequences) {
    known.emplace(std::pair(s.prompt_index, s.sample_index), &s);
  }
  std::vector<Sequence> sequences;
  for (const TokenPrompt& prompt : prompts) {
    for (std::int32_t sample = 0; sample < prompt.samples; ++sample) {
      const std::string place = place_of(recorded.step, prompt.prompt_index, sample);
      const auto at = known.find({prompt.prompt_index, sample});
      if (at == known.end()) {
        problems.push_back({file, place, "no such sample", "a recorded response", {}});
      } else if (at->second->prompt != prompt.tokens) {
        problems.push_back(
            {file, place, "another prompt", "the prompt of this run",
             "replay needs the data, order and samples per prompt of the recording"});
      } else {
        sequences.push_back(*at->second);
        sequences.back().uid = prompt.uid;
      }
    }
  }
  return sequences;
}

void check_experts(std::span<const Sequence> sequences, std::int64_t step, const ModelSpec& model,
                   const std::string& file, Problems& problems) {
  const std::int64_t experts = model.moe->experts;
  const auto width =
      static_cast<std::size_t>(moe_layer_count(model) * model.moe->experts_per_token);
  for (const Sequence& s : sequences) {
    const std::size_t found = s.routed_experts.size();
    const std::size_t most = (s.prompt.size() + s.response.size()) * width;
    const bool known = std::ranges::all_of(
        s.routed_experts, [&](std::int16_t expert) { return expert >= 0 && expert < experts; });
    if (found > 0 && found <= most && found % width == 0 && known) continue;
    problems.push_back(
        {file, place_of(step, s.prompt_index, s.sample_index) + ", routed_experts",
         std::to_string(found) +
             (known ? " choices" : " choices, some of experts that are not there"),
         "choices of " + std::to_string(experts) + " experts, " + std::to_string(width) +
             " a token, of up to " + std::to_string(most / width) + " tokens",
         "actor_rollout_ref.actor.router_replay.record: true writes them, in a run of this model"});
  }
}

}  // namespace tessera
