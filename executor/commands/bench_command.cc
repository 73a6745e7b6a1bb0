// tessera bench reshard|collectives: measures beside the ceilings of the same run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/bench/collectives_bench.h"
#include "executor/bench/reshard_bench.h"
#include "executor/commands/bench_run.h"
#include "executor/commands/commands.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::int64_t kSmallestCollective = std::int64_t{1} << 20;  // bytes

struct BenchOptions {
  BenchStart start;
  std::string model = "qwen2.5-7b", dtype = "auto";
  std::vector<std::string> cases{"tp4-tp1", "tp4-tp2", "tp2pp2-tp2", "fsdp4-tp2"}, transports;
  int repetitions = 10;
  bool practice = false, no_ceilings = false;
  std::int64_t largest = 0;  // of collectives
};

std::vector<ReshardTransport> transports_of(const BenchOptions& options, bool gpu) {
  std::vector<std::string> names = options.transports;
  if (names.empty()) {
    names = gpu ? std::vector<std::string>{"copy_engine", "window", "all_gather", "send_recv"}
                : std::vector<std::string>{"host", "all_gather", "send_recv"};
  }
  std::vector<ReshardTransport> made;
  for (const std::string& name : names) {
    const auto transport = transport_from(name);
    if (!transport) {
      throw Error(ExitCode::usage, "no transport is called " + name +
                                       ": copy_engine, window, all_gather, send_recv or host");
    }
    made.push_back(*transport);
  }
  return made;
}

DType dtype_of_bench(const BenchOptions& options, bool gpu) {
  if (options.dtype == "auto") return gpu ? DType::bf16 : DType::fp32;
  const auto type = dtype_from(options.dtype);
  if (!type || (*type != DType::bf16 && *type != DType::fp32)) {
    throw Error(ExitCode::usage, "--dtype is bf16 or fp32, not " + options.dtype);
  }
  return *type;
}

ReshardCase case_of(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) {
    throw Error(ExitCode::usage, "--case is FROM-TO, e.g. tp2pp2-tp2, not " + text);
  }
  return {text.substr(0, dash), text.substr(dash + 1)};
}

void run_reshard(const BenchOptions& options) {
  const ModelSpec model = bench_model(options.model);
  run_bench(
      options.start, "reshard",
      [&](RankSetup&, const BenchSite& site) {
        const ReshardBenchOptions each{.dtype = dtype_of_bench(options, site.gpu()),
                                       .repetitions = options.repetitions,
                                       .transports = transports_of(options, site.gpu()),
                                       .ceilings = !options.no_ceilings,
                                       .practice = options.practice};
        std::vector<ReshardCase> cases;
        for (const std::string& text : options.cases) cases.push_back(case_of(text));
        check_cases(cases, model, site.host->size());
        json figures = json::array();
        for (const ReshardCase& which : cases) {
          json figure = bench_reshard(site, model, which, each);
          figure["model"] = options.model;
          if (site.host->rank() == 0) {
            std::fprintf(stderr, "%s %s", options.model.c_str(), reshard_table(figure).c_str());
          }
          figures.push_back(std::move(figure));
        }
        return figures;
      },
      [](const json& figures) {
        std::string text;
        for (const json& figure : figures) text += reshard_table(figure);
        return text;
      });
}

void run_collectives(const BenchOptions& options) {
  run_bench(
      options.start, "collectives",
      [&](RankSetup&, const BenchSite& site) {
        const std::int64_t largest = options.largest > 0 ? options.largest
                                     : site.gpu()        ? std::int64_t{8} << 30
                                                         : std::int64_t{16} << 20;
        CollectivesBenchOptions each{.repetitions = options.repetitions};
        for (std::int64_t size = kSmallestCollective; size <= largest; size *= 8) {
          each.sizes.push_back(size);
        }
        return bench_collectives(site, each);
      },
      collectives_table);
}

}  // namespace

void add_bench(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* bench = app.add_subcommand("bench", "Measure beside the ceilings of the same run");
  bench->require_subcommand(1);
  const auto common = [&](CLI::App* command, const std::shared_ptr<BenchOptions>& options) {
    options->start.words = words;
    command
        ->add_option("--ranks", options->start.ranks, "Ranks, one GPU each where there are enough")
        ->check(CLI::Range(1, 1024));
    command->add_option("--device", options->start.device, "cpu, cuda or auto")
        ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
    command->add_option("--repeat", options->repetitions, "Timed repetitions")
        ->check(CLI::Range(1, 1000));
    command->add_option("-o,--output", options->start.output, "JSON file to write");
  };
  CLI::App* reshard = bench->add_subcommand("reshard", "Reshards of a whole model's weights");
  auto options = std::make_shared<BenchOptions>();
  common(reshard, options);
  reshard->add_option("--model", options->model, "Preset, folder or config.json");
  reshard->add_option("--case", options->cases, "FROM-TO, e.g. tp4-tp2, tp2pp2-tp2, fsdp4-tp1");
  reshard->add_option("--transport", options->transports,
                      "copy_engine, window, all_gather, send_recv, host; all by default");
  reshard->add_option("--dtype", options->dtype, "bf16 or fp32");
  reshard->add_flag("--practice", options->practice,
                    "Also overlap, stream order and changed weights only");
  reshard->add_flag("--no-ceilings", options->no_ceilings, "Leave the ceilings out");
  reshard->callback([options] { run_reshard(*options); });
  CLI::App* collectives = bench->add_subcommand("collectives", "Every operation, by size");
  auto sizes = std::make_shared<BenchOptions>();
  common(collectives, sizes);
  collectives
      ->add_option("--largest", sizes->largest, "Bytes of the largest buffer; at least 1 MiB")
      ->check(CLI::Range(kSmallestCollective, std::int64_t{1} << 40));
  collectives->callback([sizes] { run_collectives(*sizes); });
  add_bench_rollout(*bench, words);
  add_bench_train(*bench, words);
  add_bench_rl(*bench, words);
}

}  // namespace tessera
