#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "executor/bench/train_bench.h"

namespace tessera {
namespace {

using nlohmann::json;

double number(const json& at, const char* key) { return at.at(key).get<double>(); }

std::string layout_line(const json& result) {
  char line[240];
  const json& layout = result["layout"];
  std::snprintf(line, sizeof line,
                "tp%d pp%d vpp%d dp%dx%d zero%d%s, %d layers, %d x %lld tokens, recompute %s\n",
                layout["tp"].get<int>(), layout["pp"].get<int>(), layout["vpp"].get<int>(),
                layout["dp_replicate"].get<int>(), layout["dp_shard"].get<int>(),
                layout["zero"].get<int>(), layout["sequence_parallel"].get<bool>() ? " sp" : "",
                result["layers"].get<int>(), result["micro_batches"].get<int>(),
                result["micro_batch_tokens"].get<long long>(),
                result["recompute"].get<std::string>().c_str());
  return line;
}

/// The step beside its ceiling and its prediction, where there are any.
std::string comparison_lines(const json& result, double step) {
  std::string text;
  char line[240];
  if (result.contains("ceiling")) {
    const double gemm = number(result["ceiling"], "gemm_s");
    std::snprintf(line, sizeof line,
                  "  matrix products alone %.4f s (%.0f TFLOP/s), %.1f %% of it\n", gemm,
                  number(result["ceiling"], "gemm_tflops"), gemm / step * 100);
    text += line;
  }
  if (result.contains("prediction") && !result["prediction"].is_null()) {
    const double predicted = number(result["prediction"], "step_s");
    std::snprintf(line, sizeof line, "  predicted %.4f s (%+.1f %%), peak %.1f GiB\n", predicted,
                  (predicted / step - 1) * 100, number(result["prediction"], "peak_gib"));
    text += line;
  }
  return text;
}

std::string profile_lines(const json& profile) {
  std::string text;
  char line[240];
  std::snprintf(line, sizeof line, "    %9.3f ms of %.3f ms without computation\n",
                number(profile, "idle_s") * 1e3, number(profile, "span_s") * 1e3);
  text += line;
  for (const json& each : profile["idle"]) {
    std::snprintf(line, sizeof line, "    %9.3f ms %6d x  after %s, before %s\n",
                  number(each, "seconds") * 1e3, each["times"].get<int>(),
                  each["after"].get<std::string>().c_str(),
                  each["before"].get<std::string>().c_str());
    text += line;
  }
  for (const auto& [kind, seconds] : profile["kinds"].items()) {
    std::snprintf(line, sizeof line, "    %-12s %9.3f ms\n", kind.c_str(),
                  seconds.get<double>() * 1e3);
    text += line;
  }
  for (const json& each : profile["kernels"]) {
    std::snprintf(line, sizeof line, "    %9.3f ms %6d x  %s\n", number(each, "seconds") * 1e3,
                  each["launches"].get<int>(), each["kernel"].get<std::string>().c_str());
    text += line;
  }
  return text;
}

}  // namespace

std::string train_table(const json& result) {
  char line[240];
  const json& split = result["split"];
  const double step = number(result, "step_s");
  std::string text = layout_line(result);
  std::snprintf(line, sizeof line, "  step %.4f s  %.0f tok/s/GPU", step,
                number(result, "tokens_per_s_per_gpu"));
  text += line;
  if (result.contains("mfu")) {
    std::snprintf(line, sizeof line, "  MFU %.1f %% (verl's %.1f %%)", number(result, "mfu") * 100,
                  number(result, "mfu_verl") * 100);
    text += line;
  }
  if (!result["memory"].is_null()) {
    const double shared = number(result["memory"], "shared");
    std::snprintf(line, sizeof line, "  peak %.1f GiB (%.1f of them read by peers)",
                  (number(result["memory"], "allocated") + shared) / (1LL << 30),
                  shared / (1LL << 30));
    text += line;
  }
  std::snprintf(line, sizeof line,
                "\n  forward and backward %.4f s, optimizer %.4f s; waits for the side stream %.4f "
                "s, collectives in line %.4f s\n",
                number(split, "forward_backward_s"), number(split, "optimizer_s"),
                number(split, "exposed_side_s"), number(split, "inline_comm_s"));
  text += line;
  text += comparison_lines(result, step);
  if (result.contains("profile")) text += profile_lines(result["profile"]);
  return text;
}

}  // namespace tessera
