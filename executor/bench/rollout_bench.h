// tessera bench rollout: generation by the rollout's own engine, standing alone.
//
// The model has random weights, prompts are random tokens, lengths of responses are forced, so that
// only speed is measured; tokens are drawn as a run draws them. Collective over the world; one
// thread per rank. Times in seconds.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "executor/bench/reshard_rig.h"

namespace tessera {

/// One load of every replica. Responses have `response` tokens, or with cv > 0 log-normal lengths
/// of that mean, cut at four times it.
struct RolloutCase {
  std::int64_t prompts = 1, samples = 1;
  std::int64_t prompt = 1, response = 1;  // tokens
  double cv = 0;
};

/// PROMPTSxSAMPLES:PROMPT+RESPONSE with ~CV where lengths are spread: 128x8:512+1024~0.5. Throws
/// Error{usage}.
RolloutCase rollout_case(const std::string& text);

struct RolloutBenchOptions {
  int tp = 1;  // replicas take the other ranks
  DType dtype = DType::bf16;
  std::int64_t max_sequences = 256, prefill_tokens = 16384;
  int repetitions = 2;
  bool batch_invariant = false;  // in the fixed order, as rollout.batch_invariant
  bool profile = false;          // once more, by kernel
};

/// cold_s: the first time, with everything that is done once. Of every repetition: seconds (the
/// slowest rank's), output_tokens_per_s_per_gpu, first_tokens_s (the same prompts with one token
/// each), decode_tokens_per_s_per_gpu (of the rest, where that is a tenth of the whole or more),
/// counts.
nlohmann::json bench_rollout(const BenchSite& site, const ModelSpec& model, const RolloutCase& load,
                             const RolloutBenchOptions& options);

std::string rollout_table(const nlohmann::json& figures);

}  // namespace tessera
