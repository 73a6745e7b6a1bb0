// tessera-run bench rl: whole GRPO steps with each way of moving the weights, in one process.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/command_line.h"
#include "cost_models/documents/out_of_memory.h"
#include "executor/bench/memory_peak.h"
#include "executor/commands/bench_rl_inputs.h"
#include "executor/commands/commands.h"
#include "executor/commands/memory_report.h"
#include "executor/launch/start_stages.h"
#include "executor/loop/share.h"
#include "executor/loop/training_loop.h"
#include "planner/plan/reshard_mode.h"

namespace tessera {
namespace {

using nlohmann::json;

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

/// Of one phase: what its fullest rank held by each step's end, at most, beside what the plan says
/// that its roles need together. Bytes in GiB.
json memory_of(const std::vector<Metrics>& steps, const Plan& plan) {
  json made = json::object();
  for (const Metrics& step : steps) {
    for (const auto& [name, gib] : step) {
      if (!name.starts_with("memory_gib/")) continue;
      const std::size_t slash = name.rfind('/');
      json& most = made[name.substr(11, slash - 11)][name.substr(slash + 1)];
      most = std::max(most.is_null() ? 0.0 : most.get<double>(), gib);
    }
  }
  for (const RolePlan& role : plan.roles) {
    for (const auto& [phase, use] : role.memory) {
      json& predicted = made[std::string(name_of(phase))]["predicted"];
      for (const auto& [part, bytes] : memory_classes(use)) {
        if (bytes == 0) continue;
        predicted[std::string(name_of(role.role)) + "/" + std::string(part)] =
            static_cast<double>(bytes.value) / (1LL << 30);
      }
    }
  }
  return made;
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
  if (const auto& seconds = series["rollout/verify_weights_s"]; !seconds.empty()) {
    made["verify_weights_s"] = median(seconds);
    made["verified_bytes"] = median(series["rollout/verified_bytes"]);
  }
  return made;
}

json predicted(const Plan& plan) {
  json made{{"step_s", plan.prediction.step_s.value},
            {"peak_bytes", plan.prediction.peak_bytes.value}};
  for (const auto& [phase, seconds] : plan.prediction.phases_s) {
    made["phases_s"][std::string(name_of(phase))] = seconds.value;
  }
  return made;
}

/// `first_step_begins_s` counts from the command: of the first way it is the start of all.
void add_start(json& made, const StartStages& stages) {
  made["first_step_begins_s"] = stages.until_s;
  made["start_s"] =
      json(std::map<std::string, double>(stages.seconds.begin(), stages.seconds.end()));
}

/// Of all ranks.
std::int64_t largest_peak(const BenchSite& site, const MemoryPeak& memory) {
  const std::map<std::string, double> most =
      share_numbers(*site.host, {{"peak", static_cast<double>(memory.bytes())}});
  return static_cast<std::int64_t>(most.at("peak"));
}

/// The command again, to which a limit may be added.
std::string command_of(const RlOptions& options) {
  std::string line = "tessera";
  for (const std::string& word : options.start.words) line += " " + word;
  return line;
}

json run_way(RankSetup& setup, const BenchSite& site, const RlOptions& options,
             const RlInputs& inputs, const std::string& way) {
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
  Worker worker;
  std::vector<Metrics> steps;
  std::vector<std::uint64_t> digests;
  Phase phase = Phase::load;
  std::int64_t step = 0;
  StartStages stages;
  end_stage(stages, "processes, communication and inputs");
  RunObserver observer;
  observer.phase_started = [&](Phase next, std::int64_t of_step) {
    if (phase == Phase::load) end_stage(stages, "prompts");
    phase = next;
    step = of_step;
  };
  observer.step_finished = [&](std::int64_t, const Metrics& numbers, const Experience& experience) {
    steps.push_back(numbers);
    digests.push_back(digest_of(experience));
  };
  try {
    fill_worker(worker, plan, config,
                {.world = site.world,
                 .host = site.host,
                 .device = site.device,
                 .stream = site.stream,
                 .side = &side,
                 .memory = setup.memory.get(),
                 .logs = inputs.folder(),
                 .stages = &stages});
    run_training(worker, plan, config, {prompts}, observer);
  } catch (const std::exception& error) {
    const auto refusal = setup.memory->refusal_of(error);
    if (!refusal) throw;
    const MemoryReport report =
        memory_report(plan, *refusal, setup.rank, setup.device.str(), phase, step);
    throw Error(kOutOfMemory, tell(report, inputs.folder(), command_of(options)));
  }
  json made = summary_of(steps);
  add_start(made, stages);
  made["reshard"] = way;
  made["samples_by_step"] = digests;
  made["memory_gib"] = memory_of(steps, plan);
  made["predicted"] = predicted(plan);
  made["peak_bytes"] = largest_peak(site, memory);
  if (worker.weight_reshard != nullptr) {
    made["transport"] = name_of(worker.weight_reshard->transport());
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
        const RlInputs inputs(options, site);
        json figures = json::array();
        for (const std::string& way : options.ways) {
          figures.push_back(run_way(setup, site, options, inputs, way));
          if (site.host->rank() == 0) {
            std::fprintf(stderr,
                         "%s: %.4f s a step, %.3f ms of it the reshard; its first step began %.1f "
                         "s after the command\n",
                         way.c_str(), figures.back()["step_s"].get<double>(),
                         figures.back()["reshard_exposed_s"].get<double>() * 1e3,
                         figures.back()["first_step_begins_s"].get<double>());
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
  rl->add_option("--reshard-option", options->settings,
                 "'KEY: VALUE' of run.yaml's reshard section, for the minimal ways");
  rl->add_option("--rollout-option", options->rollout,
                 "'KEY: VALUE' of run.yaml's actor_rollout_ref.rollout, as 'engine: vllm'");
  rl->add_option("--prompts", options->prompts, "Prompts of a step")->check(CLI::Range(1, 100000));
  rl->add_option("--samples", options->samples, "Samples of a prompt")->check(CLI::Range(1, 10000));
  rl->add_option("--digits", options->digits, "Digits of a prompt")->check(CLI::Range(1, 64));
  rl->add_option("--response", options->response, "Tokens of a response, at most")
      ->check(CLI::Range(1, 1 << 20));
  rl->add_option("--steps", options->steps, "Steps after the first")->check(CLI::Range(1, 10000));
  rl->add_option("--lr", options->learning_rate, "Learning rate");
  rl->add_option("--memory-limit-gib", options->memory_limit_gib,
                 "GiB of every device that the plan may fill, its reserve included")
      ->check(above_zero());
  rl->add_flag("--deterministic", options->deterministic,
               "Backward passes with the same bits in every run");
  rl->callback([options] { run_rl(*options); });
}

}  // namespace tessera
