// samples.jsonl: what a run generated, one sequence per line, readable by people (verl's fields)
// and complete enough for another run to replay the rollout instead of generating.
//
// UTF-8 JSON lines. Lines of one step may come in any order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/rl/experience.h"

namespace tessera {

/// Decoded texts of one sequence; any may be empty.
struct SampleText {
  std::string input, output, ground_truth;
};

/// One line without its end: verl's {input, output, gts, score, step} and what a replay needs
/// (prompt_index, sample_index, uid, prompt_ids, response_ids, rollout_log_probs, finished and,
/// where there are holes, response_mask; routed_experts where `experts` are wanted). Bytes of texts
/// that are not UTF-8 become U+FFFD.
std::string sample_line(std::int64_t step, const Sequence& sequence, const SampleText& text = {},
                        bool experts = false);

/// Reads such lines: one Experience per step, steps rising, sequences in their order. Every bad
/// line is a Problem with its line number; unknown keys are ignored (other tools add their own).
std::vector<Experience> read_samples(std::istream& in, const std::string& file, Problems& problems);
std::vector<Experience> read_samples(const std::filesystem::path& file, Problems& problems);

}  // namespace tessera
