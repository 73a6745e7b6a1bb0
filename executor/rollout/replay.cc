#include "executor/rollout/replay.h"

#include <map>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {

std::vector<Sequence> replay(const Experience& recorded, std::span<const TokenPrompt> prompts,
                             const std::string& file, Problems& problems) {
  std::map<std::pair<std::int32_t, std::int32_t>, const Sequence*> known;
  for (const Sequence& s : recorded.sequences) {
    known.emplace(std::pair(s.prompt_index, s.sample_index), &s);
  }
  std::vector<Sequence> sequences;
  for (const TokenPrompt& prompt : prompts) {
    for (std::int32_t sample = 0; sample < prompt.samples; ++sample) {
      const std::string place = "step " + std::to_string(recorded.step) + ", prompt_index " +
                                std::to_string(prompt.prompt_index) + ", sample_index " +
                                std::to_string(sample);
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

}  // namespace tessera
