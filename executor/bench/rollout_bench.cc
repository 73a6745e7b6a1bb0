#include "executor/bench/rollout_bench.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <regex>

#include "cost_models/documents/problem.h"
#include "executor/bench/kernel_profile.h"
#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/prompt_dealing.h"
#include "executor/rollout/rollout_groups.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::size_t kProfiledKernels = 25;

ParallelLayout layout_of(const ModelSpec& model, int tp, int ranks) {
  if (tp < 1 || ranks % tp != 0) throw Error(ExitCode::usage, "--tp divides the ranks");
  ParallelLayout layout{{.tp = tp, .dp = ranks / tp}};
  layout.stages = even_stages(model.layers, 1);
  return layout;
}

RankMap map_of(const ParallelLayout& layout, int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  Problems problems;
  RankMap map = make_rank_map(RankOrder::contiguous, layout, all, nullptr, "layout", problems);
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  return map;
}

/// Prompts of every replica; the same on every rank.
std::vector<TokenPrompt> prompts_of(const RolloutCase& load, std::int64_t vocab, int replicas) {
  std::mt19937_64 random(17);
  const double sigma = std::sqrt(std::log1p(load.cv * load.cv));
  std::lognormal_distribution<double> length(
      std::log(static_cast<double>(load.response)) - sigma * sigma / 2, sigma);
  std::vector<TokenPrompt> prompts;
  for (std::int64_t i = 0; i < load.prompts * replicas; ++i) {
    TokenPrompt prompt{.prompt_index = static_cast<std::int32_t>(i),
                       .uid = std::to_string(i),
                       .samples = static_cast<std::int32_t>(load.samples)};
    for (std::int64_t t = 0; t < load.prompt; ++t) {
      prompt.tokens.push_back(
          static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab)));
    }
    for (std::int64_t s = 0; load.cv > 0 && s < load.samples; ++s) {
      const double tokens =
          std::clamp(length(random), 1.0, 4.0 * static_cast<double>(load.response));
      prompt.limits.push_back(std::llround(tokens));
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

struct Timed {
  Rollout rollout;
  double seconds = 0;
};

class RolloutBench {
 public:
  RolloutBench(const BenchSite& site, const ModelSpec& model, const RolloutCase& load,
               const RolloutBenchOptions& options)
      : site_(site),
        load_(load),
        options_(options),
        layout_(layout_of(model, options.tp, site.host->size())),
        groups_(make_rollout_groups(*site.world, *site.host, map_of(layout_, site.host->size()),
                                    site.device, site.stream)),
        weights_(make_weights(parameter_table(model), layout_, groups_.coord, options.dtype,
                              site.device)),
        engine_(weights_, groups_, options.batch_invariant ? SumOrder::fixed : SumOrder::fastest),
        prompts_(prompts_of(load, model.vocab, layout_.dp)) {
    initialize(weights_, /*seed=*/11, /*deviation=*/0.02, site.device);
  }

  json run() {
    json result{{"prompts", load_.prompts},
                {"samples", load_.samples},
                {"prompt", load_.prompt},
                {"response", load_.response},
                {"cv", load_.cv},
                {"tp", options_.tp},
                {"replicas", layout_.dp},
                {"dtype", name_of(options_.dtype)},
                {"batch_invariant", options_.batch_invariant},
                {"max_sequences", options_.max_sequences}};
    // Graphs are captured, kernels chosen.
    result["cold_s"] = generate(load_.response).seconds;
    for (int i = 0; i < options_.repetitions; ++i) {
      result["repetitions"].push_back(figures(generate(1), generate(load_.response)));
    }
    if (options_.profile) result["profile"] = profile();
    return result;
  }

 private:
  Timed generate(std::int64_t response) {
    const std::int64_t longest = load_.cv > 0 && response > 1 ? 4 * response : response;
    const RolloutOptions options{.sampling = {},
                                 .seed = 3,
                                 .max_response_tokens = longest,
                                 .max_sequences = options_.max_sequences,
                                 .prefill_tokens = options_.prefill_tokens};
    const auto mine = prompts_of_replica(prompts_, layout_.dp, groups_.dp_rank);
    synchronize(site_.device);
    site_.host->barrier();
    const Stopwatch watch;
    Timed timed{engine_.generate(1, mine, options)};
    synchronize(site_.device);
    timed.seconds = slowest(*site_.host, watch.seconds());
    return timed;
  }

  json figures(const Timed& first, const Timed& whole) const {
    double tokens = 0;
    for (const Sequence& s : whole.rollout.sequences)
      tokens += static_cast<double>(s.response.size());
    const auto samples = static_cast<double>(whole.rollout.sequences.size());
    const double per_gpu = 1.0 / options_.tp;
    const double rest = whole.seconds - first.seconds;
    const RolloutCounts& counts = whole.rollout.counts;
    json figure{
        {"seconds", whole.seconds},
        {"first_tokens_s", first.seconds},
        {"prefill_tokens_per_s_per_gpu",
         static_cast<double>(first.rollout.counts.prefill_tokens) / first.seconds * per_gpu},
        {"output_tokens_per_s_per_gpu", tokens / whole.seconds * per_gpu},
        {"prefill_tokens", counts.prefill_tokens},
        {"decode_steps", counts.decode_steps},
        {"decode_tokens", counts.decode_tokens},
        {"tail_steps", counts.tail_steps},
        {"preemptions", counts.preemptions},
        {"kv_cache_gib", static_cast<double>(whole.rollout.kv_cache_bytes) / (1 << 30)}};
    if (load_.response > 1 && rest > 0.1 * whole.seconds) {
      figure["decode_tokens_per_s_per_gpu"] = (tokens - samples) / rest * per_gpu;
      figure["decode_step_ms"] = 1e3 * rest / static_cast<double>(counts.decode_steps);
    }
    return figure;
  }

  json profile() {
    const KernelProfile profile =
        profile_kernels([&] { generate(load_.response); }, site_.device.is_cuda());
    json kernels = json::array();
    for (const KernelTime& kernel : profile.kernels) {
      if (kernels.size() == kProfiledKernels) break;
      kernels.push_back({{"kind", kernel.kind},
                         {"name", kernel.name},
                         {"launches", kernel.launches},
                         {"seconds", kernel.seconds}});
    }
    return {{"span_s", profile.span_s}, {"idle_s", profile.idle_s}, {"kernels", kernels}};
  }

  const BenchSite& site_;
  RolloutCase load_;
  RolloutBenchOptions options_;
  ParallelLayout layout_;
  ParallelGroups groups_;
  Weights weights_;
  RolloutEngine engine_;
  std::vector<TokenPrompt> prompts_;
};

}  // namespace

RolloutCase rollout_case(const std::string& text) {
  static const std::regex form(R"((\d{1,7})x(\d{1,5}):(\d{1,7})\+(\d{1,7})(?:~(\d+(?:\.\d+)?))?)");
  std::smatch match;
  const auto number = [&](int group) { return std::stoll(match[group].str()); };
  if (std::regex_match(text, match, form)) {
    const RolloutCase load{.prompts = number(1),
                           .samples = number(2),
                           .prompt = number(3),
                           .response = number(4),
                           .cv = match[5].matched ? std::stod(match[5].str()) : 0};
    if (load.prompts > 0 && load.samples > 0 && load.prompt > 0 && load.response > 0) return load;
  }
  throw Error(ExitCode::usage,
              "--case is PROMPTSxSAMPLES:PROMPT+RESPONSE[~CV] in tokens, e.g. "
              "128x8:512+1024~0.5, not " +
                  text);
}

json bench_rollout(const BenchSite& site, const ModelSpec& model, const RolloutCase& load,
                   const RolloutBenchOptions& options) {
  return RolloutBench(site, model, load, options).run();
}

}  // namespace tessera
