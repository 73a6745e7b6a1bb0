// tessera bench train|kernels: a model's training steps in one layout, their ceiling and their
// prediction; and the kernels they are made of.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "executor/bench/kernels_bench.h"
#include "executor/bench/train_bench.h"
#include "executor/bench/train_layout.h"
#include "executor/commands/bench_run.h"
#include "executor/commands/commands.h"
#include "planner/engines/choices.h"
#include "planner/plan/recompute.h"
#include "planner/sweep/price.h"

namespace tessera {
namespace {

using nlohmann::json;

struct Options {
  BenchStart start;
  std::string model = "qwen2-7b", layout, dtype = "auto", recompute = "none";
  std::string cluster = "auto", calibration, collectives = "none";
  std::vector<std::int64_t> micro_batch_tokens{4096};
  std::int64_t sequence = 4096;
  int layers = 0, micro_batches = 0, steps = 5, warm_up = 2;
  bool keep_gathered = false, offload = false, profile = false, no_ceilings = false;
};

Recompute recompute_of(const std::string& name) {
  for (const Recompute each : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (name_of(each) == name) return each;
  }
  throw Error(ExitCode::usage, "--recompute is none, selective or full, not " + name);
}

DType dtype_of(const std::string& name, bool gpu) {
  if (name == "auto") return gpu ? DType::bf16 : DType::fp32;
  const auto type = dtype_from(name);
  if (!type) throw Error(ExitCode::usage, "--dtype is bf16 or fp32, not " + name);
  return *type;
}

/// The cluster whose peak the MFU refers to, and which predicts.
SweepInputs inputs_of(const Options& options, const ModelSpec& model, bool gpu) {
  SweepRow row{.model = options.model,
               .cluster = options.cluster != "auto" ? options.cluster
                          : gpu                     ? "h200-8"
                                                    : "local-cpu"};
  Problems problems;
  auto inputs = read_sweep_inputs({&row, 1}, ".", "--cluster", options.calibration, problems);
  if (!inputs) throw Error(ExitCode::bad_input, std::move(problems));
  inputs->models.begin()->second.spec = model;
  return *std::move(inputs);
}

/// The prediction of the planner's cost model for the step, or null where it has none.
json predict(const SweepInputs& inputs, const TrainBenchOptions& o, int ranks) {
  const ParallelLayout& layout = o.layout;
  SweepRow row{.model = inputs.models.begin()->first,
               .cluster = inputs.clusters.begin()->first,
               .kind = SweepKind::train};
  row.engine = kOwnEngine;
  row.gpus = ranks, row.tp = layout.tp, row.pp = layout.pp, row.dp = layout.dp;
  row.cp = layout.cp, row.vpp = layout.vpp, row.zero = layout.zero;
  row.micro_batch = o.micro_batch_tokens / o.sequence;
  row.global_batch = *row.micro_batch * o.micro_batches * layout.dp;
  row.prompt_tokens = static_cast<double>(o.sequence);
  row.response_tokens = 0;
  row.recompute = o.recompute;
  row.reshard_after_forward = o.reshard_after_forward;
  row.offload_optimizer = o.offload;
  row.sequence_parallel = layout.sequence_parallel;
  row.precision = o.dtype == DType::fp32 ? SweepPrecision::fp32 : SweepPrecision::bf16;
  const SweepResult result = SweepPricer(inputs, {}).price(row);
  if (!result.update_s) return {{"why", result.why}};
  const SweepCluster& cluster = inputs.clusters.begin()->second;
  return {{"step_s", result.update_s->value},
          {"peak_gib", result.peak_gib.value_or(0)},
          {"mfu", result.mfu.value_or(0)},
          {"calibration", cluster.calibration.created.empty() ? "shipped" : "measured"},
          {"why", result.why}};
}

TrainBenchOptions bench_options(const Options& o, const ModelSpec& model, const BenchSite& site) {
  TrainBenchOptions made{.layout = train_layout(o.layout, model, site.host->size()),
                         .sequence = o.sequence,
                         .steps = o.steps,
                         .warm_up = o.warm_up,
                         .dtype = dtype_of(o.dtype, site.gpu()),
                         .recompute = recompute_of(o.recompute),
                         .reshard_after_forward = !o.keep_gathered,
                         .read_peers = o.collectives != "all",
                         .read_gradients = o.collectives == "none",
                         .offload = o.offload,
                         .ceilings = !o.no_ceilings,
                         .profile = o.profile};
  const int stages = made.layout.pp;
  made.micro_batches = o.micro_batches > 0 ? o.micro_batches : stages == 1 ? 1 : 4 * stages;
  return made;
}

void run(const Options& options) {
  ModelSpec model = bench_model(options.model);
  if (options.layers > 0) model.layers = options.layers;
  for (const std::int64_t tokens : options.micro_batch_tokens) {
    if (options.sequence < 2 || tokens % options.sequence != 0) {
      throw Error(ExitCode::usage, "--micro-batch-tokens is a multiple of --sequence");
    }
  }
  run_bench(
      options.start, "train",
      [&](RankSetup& setup, const BenchSite& site) {
        TrainBenchOptions each = bench_options(options, model, site);
        const SweepInputs inputs = inputs_of(options, model, site.gpu());
        each.peak_flops = inputs.clusters.begin()->second.spec.device.peak_bf16.value;
        const SideLane lane = make_side_lane(setup);
        const TrainSite train{.at = site, .side_world = lane.world.get(), .side = lane.stream};
        json figures = json::array();
        for (const std::int64_t tokens : options.micro_batch_tokens) {
          each.micro_batch_tokens = tokens;
          json figure = bench_train(train, model, each);
          figure["model"] = options.model;
          figure["prediction"] = predict(inputs, each, site.host->size());
          if (setup.rank == 0) {
            std::fprintf(stderr, "%s %s", options.model.c_str(), train_table(figure).c_str());
          }
          figures.push_back(std::move(figure));
        }
        return figures;
      },
      [](const json& figures) {
        std::string text;
        for (const json& figure : figures) text += train_table(figure);
        return text;
      });
}

struct KernelOptions {
  BenchStart start{.ranks = 1};
  std::string model, dtype = "auto";
  KernelsBenchOptions each{.tokens = 0, .sequence = 0, .optimizer_elements = 0, .repetitions = 0};
};

/// Fills in what was not given: sizes of a training step on a GPU, seconds' worth on a CPU.
void fill_kernel_options(KernelOptions& options, bool gpu) {
  const auto fill = [](auto& field, auto value) {
    if (field == 0) field = value;
  };
  const KernelsBenchOptions sizes =
      gpu ? KernelsBenchOptions{}
          : KernelsBenchOptions{.tokens = 512,
                                .sequence = 256,
                                .optimizer_elements = std::int64_t{1} << 22,
                                .repetitions = 3};
  if (options.model.empty()) options.model = gpu ? "qwen2-7b" : "qwen2.5-0.5b";
  fill(options.each.tokens, sizes.tokens);
  fill(options.each.sequence, std::min(options.each.tokens, sizes.sequence));
  fill(options.each.optimizer_elements, sizes.optimizer_elements);
  fill(options.each.repetitions, sizes.repetitions);
  if (options.each.tokens % options.each.sequence != 0) {
    throw Error(ExitCode::usage, "--tokens is a multiple of --sequence");
  }
}

void run_kernels(const KernelOptions& options) {
  run_bench(
      options.start, "kernels",
      [&](RankSetup&, const BenchSite& site) {
        KernelOptions filled = options;
        fill_kernel_options(filled, site.gpu());
        filled.each.dtype = dtype_of(options.dtype, site.gpu());
        json figures = bench_kernels(site, bench_model(filled.model), filled.each);
        figures["model"] = filled.model;
        return figures;
      },
      kernels_table);
}

void add_bench_kernels(CLI::App& bench, const std::vector<std::string>& words) {
  CLI::App* command =
      bench.add_subcommand("kernels", "The kernels of a training step beside their ceilings");
  auto o = std::make_shared<KernelOptions>();
  o->start.words = words;
  command->add_option("--model", o->model,
                      "Preset, folder or config.json; default qwen2-7b, on a CPU qwen2.5-0.5b");
  command->add_option("--tokens", o->each.tokens, "Of a micro-batch; default 16384, on a CPU 512");
  command->add_option("--sequence", o->each.sequence, "Tokens of each packed sequence");
  command->add_option("--optimizer-elements", o->each.optimizer_elements, "Of the flat optimizer");
  command->add_option("--repeat", o->each.repetitions, "Timed repetitions")
      ->check(CLI::Range(1, 1000));
  command->add_option("--dtype", o->dtype, "bf16 or fp32");
  command->add_option("--device", o->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("-o,--output", o->start.output, "JSON file to write");
  command->callback([o] { run_kernels(*o); });
}

}  // namespace

void add_bench_train(CLI::App& bench, const std::vector<std::string>& words) {
  add_bench_kernels(bench, words);
  CLI::App* command = bench.add_subcommand("train", "Training steps of a model in one layout");
  auto o = std::make_shared<Options>();
  o->start.words = words;
  command->add_option("--model", o->model, "Preset, folder or config.json");
  command->add_option("--layers", o->layers, "Only so many of its layers; 0 = all");
  command->add_option(
      "--layout", o->layout,
      "tp=2,cp=2,pp=2,vpp=2,dp=2,zero=0..3,replicate=2,sp,ulysses; default FSDP over all ranks");
  command->add_option("--sequence", o->sequence, "Tokens of each packed sequence");
  command->add_option("--micro-batch-tokens", o->micro_batch_tokens,
                      "Per replica; several values: one after another");
  command->add_option("--micro-batches", o->micro_batches,
                      "Per replica and step; 0 = one, or four per pipeline stage");
  command->add_option("--recompute", o->recompute, "none, selective or full");
  command->add_option("--steps", o->steps, "Timed steps")->check(CLI::Range(1, 10000));
  command->add_option("--warm-up", o->warm_up, "Steps before")->check(CLI::Range(1, 100));
  command->add_option("--dtype", o->dtype, "bf16 or fp32");
  command->add_option("--cluster", o->cluster, "Preset or file: peak of the MFU, and prediction");
  command->add_option("--calibration", o->calibration,
                      "Of the prediction; default the shipped one");
  command
      ->add_option("--collectives", o->collectives,
                   "What NCCL moves instead of copies out of peers' memory: none, gradients or all")
      ->check(CLI::IsMember({"none", "gradients", "all"}));
  command->add_flag("--keep-gathered", o->keep_gathered,
                    "FSDP: layers stay whole between forward and backward");
  command->add_flag("--offload-optimizer", o->offload, "Optimizer states in host memory");
  command->add_flag("--profile", o->profile, "Also one step by kernel");
  command->add_flag("--no-ceilings", o->no_ceilings, "Leave the matrix products out");
  command->add_option("--ranks", o->start.ranks, "Ranks, one GPU each where there are enough")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", o->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("-o,--output", o->start.output, "JSON file to write");
  command->callback([o] { run(*o); });
}

}  // namespace tessera
