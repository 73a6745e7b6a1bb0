// The figures of rollout_bench as text.
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/printed.h"
#include "executor/bench/rollout_bench.h"

namespace tessera {
namespace {

using nlohmann::json;

std::string profile_lines(const json& profile) {
  std::string text = printed("  by kernel, once more: %.3f s, idle %.3f s\n",
                             profile["span_s"].get<double>(), profile["idle_s"].get<double>());
  for (const json& kernel : profile["kernels"]) {
    text += printed("  %8.4f s %8d x %-12s %.100s\n", kernel["seconds"].get<double>(),
                    kernel["launches"].get<int>(), kernel["kind"].get<std::string>().c_str(),
                    kernel["name"].get<std::string>().c_str());
  }
  return text;
}

}  // namespace

std::string rollout_table(const json& r) {
  std::string text = printed("%d x %d samples, %d + %d tokens, cv %g, tp %d x %d replicas\n",
                             r["prompts"].get<int>(), r["samples"].get<int>(),
                             r["prompt"].get<int>(), r["response"].get<int>(),
                             r["cv"].get<double>(), r["tp"].get<int>(), r["replicas"].get<int>());
  if (r["batch_invariant"].get<bool>()) text.insert(text.size() - 1, ", batch-invariant");
  for (const json& one : r["repetitions"]) {
    text += printed("  %9.3f s %9.0f tok/s per GPU, prefill %8.0f tok/s",
                    one["seconds"].get<double>(), one["output_tokens_per_s_per_gpu"].get<double>(),
                    one["prefill_tokens_per_s_per_gpu"].get<double>());
    if (one.contains("decode_step_ms")) {
      text += printed(", decode %9.0f tok/s, %7.3f ms a step",
                      one["decode_tokens_per_s_per_gpu"].get<double>(),
                      one["decode_step_ms"].get<double>());
    }
    text += "\n";
  }
  if (r.contains("profile")) text += profile_lines(r["profile"]);
  return text;
}

}  // namespace tessera
