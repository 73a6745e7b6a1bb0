// tessera-run bench rl: whole GRPO steps with each way of moving the weights, in one process.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "cost_models/fit/derived_calibration.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "executor/data/digit_tasks.h"
#include "executor/data/init_model.h"
#include "executor/run/bench_run.h"
#include "executor/run/commands.h"
#include "executor/run/share.h"
#include "executor/run/training_loop.h"
#include "planner/plan/model_source.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/reshard_mode.h"
#include "planner/request/request.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"

namespace tessera {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct RlOptions {
  BenchStart start;
  std::string model = "qwen2.5-0.5b", cluster, dtype = "auto";
  std::vector<std::string> ways{"full", "minimal"};
  std::vector<std::string> fixed{"actor.tp=2", "actor.pp=1", "rollout.tp=1"};
  std::vector<std::string> settings;  // of the run: KEY: VALUE lines below `reshard`
  std::int64_t prompts = 64, samples = 8, response = 256;
  int digits = 32, steps = 4;
  double learning_rate = 1e-4;
  bool deterministic = false;
};

[[noreturn]] void refuse(Problems problems) {
  throw Error(ExitCode::bad_input, std::move(problems));
}

template <class Value>
Value required(std::optional<Value> value, Problems& problems) {
  if (!value) refuse(std::move(problems));
  return *std::move(value);
}

/// One node of as many devices as there are ranks.
ClusterSpec cluster_of(const RlOptions& options, bool gpu) {
  Problems problems;
  const std::string name = !options.cluster.empty() ? options.cluster
                           : gpu                    ? "h200-8"
                                                    : "local-cpu";
  ClusterSpec cluster = required(read_cluster_spec(name, problems), problems);
  cluster.gpus_per_node = options.start.ranks;
  cluster.nodes = 1;
  return cluster;
}

Workload workload_of(const RlOptions& options) {
  const std::string text =
      "version: 1\nalgorithm: grpo\nprompts_per_step: " + std::to_string(options.prompts) +
      "\nsamples_per_prompt: " + std::to_string(options.samples) +
      "\nprompt_tokens: " + std::to_string(options.digits + 2) +
      "\nresponse_tokens: {mean: " + std::to_string(options.response) +
      ", cv: 0, max: " + std::to_string(options.response) +
      "}\nmini_batches: 1\nepochs: 1\nkl: none\n";
  Problems problems;
  return required(parse_workload(text, "bench rl", problems), problems);
}

Plan plan_of(const RlOptions& options, const fs::path& model, bool gpu) {
  Problems problems;
  PlanRequest request;
  request.fixed = parse_settings(options.fixed, problems);
  request.models.emplace("actor", required(read_model_source(model, problems), problems));
  request.cluster = cluster_of(options, gpu);
  request.workload = workload_of(options);
  if (!problems.empty()) refuse(std::move(problems));
  request.calibration = required(calibration_for_cluster(request.cluster, problems), problems);
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  PlanOutcome outcome = required(make_plan(request, problems), problems);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    throw Error(ExitCode::infeasible,
                infeasible->reasons.empty() ? "no plan" : infeasible->reasons.front());
  }
  return std::get<Plan>(std::move(outcome));
}

/// Random weights and prompts in a folder that ends with the bench, and the plan for them.
class Inputs {
 public:
  Inputs(const RlOptions& options, const BenchSite& site) : host_(*site.host) {
    std::string name, plan;
    if (host_.rank() == 0) {
      std::string pattern = (fs::temp_directory_path() / "tessera-bench-rl-XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr) throw Error(ExitCode::io, "cannot make " + pattern);
      name = pattern;
      Problems problems;
      InitModelOptions init{.seed = 1, .digit_tokenizer = true};
      init.dtype = options.dtype != "auto" ? dtype_from(options.dtype)
                   : site.gpu()            ? DType::bf16
                                           : DType::fp32;
      init_model(options.model, fs::path(name) / "model", init, problems);
      make_data(DigitTask::reverse, options.digits, 4 * options.prompts, 1, "train",
                fs::path(name) / "prompts.jsonl", problems);
      if (!problems.empty()) refuse(std::move(problems));
      plan = to_json(plan_of(options, fs::path(name) / "model", site.gpu()));
    }
    folder_ = share_texts(host_, name).front();
    Problems problems;
    this->plan = required(parse_plan(share_texts(host_, plan).front(), "plan", problems), problems);
  }
  ~Inputs() {
    std::error_code ignored;
    if (host_.rank() == 0) fs::remove_all(folder_, ignored);
  }
  Inputs(const Inputs&) = delete;

  RunConfig config(const RlOptions& options, const Plan& plan) const {
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.9e", options.learning_rate);
    std::string text =
        "data: {train_files: [" + (folder_ / "prompts.jsonl").string() +
        "]}\nactor_rollout_ref: {actor: {entropy_coeff: 0.1, optim: {lr: " + rate +
        "}}}\ntrainer: {seed: 1, total_training_steps: " + std::to_string(options.steps + 1) +
        ", deterministic: " + (options.deterministic ? "true" : "false") + "}\n";
    if (!options.settings.empty()) {
      text += "reshard:\n";
      for (const std::string& line : options.settings) text += "  " + line + "\n";
    }
    Problems problems;
    return required(parse_run_config(text, "bench rl", plan, problems), problems);
  }

  PromptSet prompts(const Plan& plan, const RunConfig& config) const {
    return read_prompt_set({.files = config.data.train_files,
                            .model = plan.models.at("actor").path,
                            .reward = config.reward.function,
                            .per_step = plan.workload.prompts_per_step,
                            .max_tokens = config.data.max_prompt_length,
                            .seed = config.data.seed,
                            .shuffle = config.data.shuffle});
  }

  Plan plan;

 private:
  Communicator& host_;
  fs::path folder_;
};

/// The most memory in use since it was made: of this rank's GPU, looked at every 20 ms, or resident
/// in the process.
class MemoryPeak {
 public:
  explicit MemoryPeak(const BenchSite& site) : device_(site.gpu() ? site.device.index() : -1) {
    if (device_ < 0) {
      std::ofstream("/proc/self/clear_refs") << "5";  // resets the high-water mark (proc(5))
      return;
    }
    torch::cuda::synchronize(device_);
    c10::cuda::CUDACachingAllocator::emptyCache();
    watch_ = std::jthread([this](const std::stop_token& stop) {
      cudaSetDevice(device_);
      while (!stop.stop_requested()) {
        std::size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        peak_ = std::max(peak_.load(), static_cast<std::int64_t>(total - free));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  std::int64_t bytes() const {
    if (device_ >= 0) return peak_;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
    }
    return 0;
  }

 private:
  int device_;
  std::atomic<std::int64_t> peak_{0};
  std::jthread watch_;
};

std::uint64_t digest_of(const Experience& experience) {
  std::uint64_t digest = 0;
  for (const Sequence& sequence : experience.sequences) {
    digest = XXH3_64bits_withSeed(sequence.response.data(),
                                  sequence.response.size() * sizeof(sequence.response[0]), digest);
  }
  return digest;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Medians over the steps but the first.
json summary_of(const std::vector<Metrics>& steps) {
  json made;
  std::map<std::string, std::vector<double>> series;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    for (const auto& [name, value] : steps[i]) series[name].push_back(value);
  }
  for (const auto& [name, values] : series) {
    if (name.starts_with("timing_s/")) made["phases_s"][name.substr(9)] = median(values);
  }
  made["step_s"] = median(series["timing_s/step"]);
  made["tokens_per_s_per_rank"] = median(series["perf/throughput"]);
  made["reshard_s"] = median(series["reshard/seconds"]);
  made["reshard_exposed_s"] = median(series["reshard/exposed_s"]);
  made["reshard_bytes"] = median(series["reshard/bytes"]);
  made["reshard_lower_bound_bytes"] = median(series["reshard/lower_bound_bytes"]);
  made["cast_error"] = median(series["reshard/cast_error"]);
  return made;
}

json run_way(RankSetup& setup, const BenchSite& site, const RlOptions& options,
             const Inputs& inputs, const std::string& way) {
  Plan plan = inputs.plan;
  const std::string mode = way.starts_with("full") ? "full" : "minimal";
  set_reshard_mode(plan, mode == "full" ? ReshardMode::full : ReshardMode::minimal);
  RlOptions own = options;
  if (mode == "full") own.settings.clear();
  if (way == "minimal-unmap") own.settings.emplace_back("storage: unmap");
  const RunConfig config = inputs.config(own, plan);
  const PromptSet prompts = inputs.prompts(plan, config);
  MemoryPeak memory(site);
  SideLane side;
  if (shares_layers(plan)) side = make_side_lane(setup);
  Worker worker = make_worker(plan, config,
                              {.world = site.world,
                               .host = site.host,
                               .device = site.device,
                               .stream = site.stream,
                               .side = &side});
  std::vector<Metrics> steps;
  std::vector<std::uint64_t> digests;
  RunObserver observer;
  observer.step_finished = [&](std::int64_t, const Metrics& numbers, const Experience& experience) {
    steps.push_back(numbers);
    digests.push_back(digest_of(experience));
  };
  run_training(worker, plan, config, prompts, observer);
  json made = summary_of(steps);
  made["reshard"] = way;
  made["samples_by_step"] = digests;
  const std::map<std::string, double> most =
      share_numbers(*site.host, {{"peak", static_cast<double>(memory.bytes())}});
  made["peak_bytes"] = static_cast<std::int64_t>(most.at("peak"));
  if (worker.weight_switch != nullptr) {
    made["transport"] = name_of(worker.weight_switch->transport());
  }
  return made;
}

/// Steps, from the first, whose samples are those of the first way.
void compare_samples(json& figures) {
  for (json& figure : figures) {
    const json &mine = figure["samples_by_step"], &first = figures[0]["samples_by_step"];
    std::size_t same = 0;
    while (same < mine.size() && mine[same] == first[same]) ++same;
    figure["steps_with_the_first_ways_samples"] = same;
    figure["steps"] = mine.size();
  }
}

/// Each way against gathering whole tensors, where that was run.
void compare_with_full(json& figures) {
  const auto full = std::find_if(figures.begin(), figures.end(),
                                 [](const json& figure) { return figure["reshard"] == "full"; });
  if (full == figures.end()) return;
  const json base = *full;
  const auto ratio = [&](const json& figure, const char* key) -> json {
    const double mine = figure[key].get<double>();
    return mine > 0 ? json(base[key].get<double>() / mine) : json(nullptr);
  };
  for (json& figure : figures) {
    figure["against_full"] = {
        {"step_speedup", ratio(figure, "step_s")},
        {"reshard_speedup", ratio(figure, "reshard_exposed_s")},
        {"tokens_per_s_ratio", figure["tokens_per_s_per_rank"].get<double>() /
                                   std::max(base["tokens_per_s_per_rank"].get<double>(), 1e-12)},
        {"peak_bytes_less",
         base["peak_bytes"].get<std::int64_t>() - figure["peak_bytes"].get<std::int64_t>()}};
  }
}

std::string rl_table(const json& figures) {
  std::string text;
  char line[400];
  for (const json& row : figures) {
    std::snprintf(
        line, sizeof line,
        "%-14s step %.4f s  (gen %.4f, update %.4f, reshard %.2f ms, %.2f ms exposed, %.4f GB to "
        "the busiest rank)  %.0f tok/s/rank  peak %.2f GiB  samples of the first way in %d of %d "
        "steps\n",
        row["reshard"].get<std::string>().c_str(), row["step_s"].get<double>(),
        row["phases_s"].value("gen", 0.0), row["phases_s"].value("update_actor", 0.0),
        row["reshard_s"].get<double>() * 1e3, row["reshard_exposed_s"].get<double>() * 1e3,
        row["reshard_bytes"].get<double>() * 1e-9, row["tokens_per_s_per_rank"].get<double>(),
        row["peak_bytes"].get<double>() / (1 << 30),
        row["steps_with_the_first_ways_samples"].get<int>(), row["steps"].get<int>());
    text += line;
    if (!row.contains("against_full") || row["reshard"] == "full") continue;
    const json& against = row["against_full"];
    std::snprintf(
        line, sizeof line,
        "%-14s against full: step %.3fx, reshard %.1fx as fast, %.2f GiB less at the peak\n", "",
        against["step_speedup"].get<double>(),
        against["reshard_speedup"].is_null() ? 0.0 : against["reshard_speedup"].get<double>(),
        against["peak_bytes_less"].get<double>() / (1 << 30));
    text += line;
  }
  return text;
}

void run_rl(const RlOptions& options) {
  run_bench(
      options.start, "rl",
      [&](RankSetup& setup, const BenchSite& site) {
        const torch::AutoGradMode gradients(true);
        const Inputs inputs(options, site);
        json figures = json::array();
        for (const std::string& way : options.ways) {
          figures.push_back(run_way(setup, site, options, inputs, way));
          if (site.host->rank() == 0) {
            std::fprintf(stderr, "%s: %.4f s a step, %.3f ms of it the switch\n", way.c_str(),
                         figures.back()["step_s"].get<double>(),
                         figures.back()["reshard_exposed_s"].get<double>() * 1e3);
          }
          site.host->barrier();
        }
        compare_samples(figures);
        compare_with_full(figures);
        return figures;
      },
      rl_table);
}

}  // namespace

void add_bench_rl(CLI::App& bench, const std::vector<std::string>& words) {
  CLI::App* rl = bench.add_subcommand("rl", "Whole GRPO steps with each way of resharding");
  auto options = std::make_shared<RlOptions>();
  options->start.words = words;
  rl->add_option("--ranks", options->start.ranks, "Ranks, one GPU each where there are enough")
      ->check(CLI::Range(1, 1024));
  rl->add_option("--device", options->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  rl->add_option("-o,--output", options->start.output, "JSON file to write");
  rl->add_option("--model", options->model, "Preset, folder or config.json; weights are random");
  rl->add_option("--cluster", options->cluster, "Preset or file; one node of `ranks` devices");
  rl->add_option("--dtype", options->dtype, "fp32 or bf16; auto: bf16 on GPUs")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  rl->add_option("--reshard", options->ways,
                 "full, minimal or minimal-unmap; one run each, may be repeated")
      ->check(CLI::IsMember({"full", "minimal", "minimal-unmap"}));
  rl->add_option("--fix", options->fixed, "ROLE.FIELD=VALUE of the plan");
  rl->add_option("--switch", options->settings,
                 "'KEY: VALUE' of run.yaml's reshard section, for the minimal ways");
  rl->add_option("--prompts", options->prompts, "Prompts of a step")->check(CLI::Range(1, 100000));
  rl->add_option("--samples", options->samples, "Samples of a prompt")->check(CLI::Range(1, 10000));
  rl->add_option("--digits", options->digits, "Digits of a prompt")->check(CLI::Range(1, 64));
  rl->add_option("--response", options->response, "Tokens of a response, at most")
      ->check(CLI::Range(1, 1 << 20));
  rl->add_option("--steps", options->steps, "Steps after the first")->check(CLI::Range(1, 10000));
  rl->add_option("--lr", options->learning_rate, "Learning rate");
  rl->add_flag("--deterministic", options->deterministic,
               "Backward passes with the same bits in every run");
  rl->callback([options] { run_rl(*options); });
}

}  // namespace tessera
