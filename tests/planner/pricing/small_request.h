// GRPO of an 8B on four nodes, small enough to be counted by hand.
#pragma once

#include <cstdint>

#include "tests/planner/sample_requests.h"

namespace tessera {

inline constexpr std::int64_t kLongest = 1536;  // tokens of small_request's longest sequence

inline PlanRequest small_request() {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0.5, 1024};
  return request_of(llama_8b(), workload, cluster_of(8, 4, 80));
}

}  // namespace tessera
