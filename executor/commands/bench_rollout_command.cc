// tessera bench rollout: generation by the rollout's own engine, standing alone.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/bench/rollout_bench.h"
#include "executor/commands/bench_run.h"
#include "executor/commands/commands.h"

namespace tessera {
namespace {

using nlohmann::json;

struct Options {
  BenchStart start{.ranks = 1};
  std::string model = "qwen2.5-7b", dtype = "auto";
  int layers = 0;
  std::vector<std::string> cases{"256x1:1024+1024"};
  RolloutBenchOptions each;
};

std::string tables_of(const json& figures) {
  std::string text;
  for (const json& figure : figures) text += rollout_table(figure);
  return text;
}

void run(const Options& options) {
  ModelSpec model = bench_model(options.model);
  if (options.layers > 0) model.layers = options.layers;
  std::vector<RolloutCase> cases;
  for (const std::string& text : options.cases) cases.push_back(rollout_case(text));
  run_bench(
      options.start, "rollout",
      [&](RankSetup& setup, const BenchSite& site) {
        RolloutBenchOptions each = options.each;
        if (options.dtype == "auto") {
          each.dtype = site.gpu() ? DType::bf16 : DType::fp32;
        } else if (const auto type = dtype_from(options.dtype)) {
          each.dtype = *type;
        } else {
          throw Error(ExitCode::usage, "--dtype is bf16 or fp32, not " + options.dtype);
        }
        json figures = json::array();
        for (const RolloutCase& load : cases) {
          json figure = bench_rollout(site, model, load, each);
          figure["model"] = options.model;
          if (setup.rank == 0) {
            std::fprintf(stderr, "%s %s", options.model.c_str(), rollout_table(figure).c_str());
          }
          figures.push_back(std::move(figure));
        }
        return figures;
      },
      tables_of);
}

}  // namespace

void add_bench_rollout(CLI::App& bench, const std::vector<std::string>& words) {
  CLI::App* command =
      bench.add_subcommand("rollout", "Generation by the rollout's own engine, standing alone");
  auto o = std::make_shared<Options>();
  o->start.words = words;
  command->add_option("--model", o->model, "Preset, folder or config.json");
  command->add_option("--layers", o->layers, "Only so many of its layers; 0 = all");
  command->add_option(
      "--case", o->cases,
      "PROMPTSxSAMPLES:PROMPT+RESPONSE[~CV] per replica, in tokens; several values");
  command->add_option("--tp", o->each.tp, "Ranks of a replica")->check(CLI::Range(1, 64));
  command->add_option("--max-sequences", o->each.max_sequences, "That decode at a time")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--prefill-tokens", o->each.prefill_tokens,
                      "Prompt tokens of one pass; 0 = no limit");
  command->add_option("--repeat", o->each.repetitions, "Timed repetitions")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--profile", o->each.profile, "Also one repetition by kernel");
  command->add_flag("--batch-invariant", o->each.batch_invariant,
                    "Samples have the same bits in any batch (rollout.batch_invariant)");
  command->add_option("--dtype", o->dtype, "bf16 or fp32");
  command->add_option("--ranks", o->start.ranks, "Ranks, one GPU each where there are enough")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", o->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("-o,--output", o->start.output, "JSON file to write");
  command->callback([o] { run(*o); });
}

}  // namespace tessera
