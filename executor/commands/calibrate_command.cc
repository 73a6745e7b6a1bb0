// tessera calibrate: measures this machine, with as many ranks as will run, and fits the constants.
#include "executor/tensor/torch.h"

#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "cost_models/fit/calibration_fit.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/commands.h"
#include "executor/launch/device_setup.h"
#include "executor/launch/relaunch.h"
#include "executor/measure/machine_samples.h"

namespace tessera {
namespace {

struct CalibrateOptions {
  std::vector<std::string> words;  // of the command line
  bool quick = false;
  int ranks = 1;
  std::string device = "auto";
  std::string base;  // shipped calibration to start from; empty = by device
  std::string output = "calibration.json";
};

/// The driver's name of the GPU without its maker: "H100 80GB HBM3".
std::string name_of(const torch::Device& device) {
  if (!device.is_cuda()) return "cpu";
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, device.index());
  const std::string name = properties.name, maker = "NVIDIA ";
  return name.starts_with(maker) ? name.substr(maker.size()) : name;
}

/// The shipped constants that measurements replace one by one; a GPU that none are shipped for
/// starts from the H200's.
Calibration base_calibration(const CalibrateOptions& options, const torch::Device& device) {
  std::string name = options.base;
  if (name.empty()) {
    DeviceSpec spec;
    spec.name = name_of(device);
    name = shipped_calibration(spec).value_or(device.is_cuda() ? "h200" : "cpu");
  }
  Problems problems;
  std::optional<Calibration> base = find_calibration(name, problems);
  if (!base) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(base);
}

void print(const std::vector<FitReport>& reports, const Problems& problems) {
  std::printf("%-24s %8s %8s %14s %10s\n", "fit", "samples", "held out", "median error", "p90");
  for (const FitReport& report : reports) {
    std::printf("%-24s %8d %8d %13.1f%% %9.1f%%\n", report.what.c_str(), report.samples,
                report.held_out, report.median_error * 100, report.p90_error * 100);
  }
  for (const Problem& problem : problems) {
    std::fprintf(stderr, "calibrate: %s\n", to_string(problem).c_str());
  }
}

void calibrate(const CalibrateOptions& options) {
  Problems problems;
  if (options.ranks > 1 && !launched()) {
    const int gpus = cuda_device_count();
    relaunch(options.words, options.ranks, get_gpus(options.device, options.ranks, gpus));
  }
  RankSetup setup = set_up_rank(options.device);
  const SideLane lane = make_side_lane(setup);
  const MeasureOptions measure{.device = setup.device,
                               .dtype = setup.device.is_cuda() ? DType::bf16 : DType::fp32,
                               .seconds_per_point = options.quick ? 0.02 : 0.2,
                               .quick = options.quick,
                               .loaded_seconds = options.quick ? 2.0 : 10.0,
                               .side_world = lane.world.get(),
                               .side = lane.stream};
  const std::vector<CalibrationSample> samples =
      measure_machine(*setup.world, setup.host(), measure);
  if (setup.rank != 0) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const FitContext context{
      .dtype = measure.dtype,
      .cores = setup.device.is_cuda() ? 0 : cores,
      .busy_ranks = setup.size,
      .origin = options.quick ? "tessera calibrate --quick" : "tessera calibrate",
      .created = utc_now()};
  std::vector<FitReport> reports;
  const Calibration fitted =
      fit_calibration(base_calibration(options, setup.device), samples, context, reports, problems);
  write_calibration(fitted, options.output);
  print(reports, problems);
  std::printf("%zu samples on %d ranks; written to %s\n", samples.size(), setup.size,
              options.output.c_str());
}

}  // namespace

void add_calibrate(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Measure this machine and fit the cost models to it");
  auto options = std::make_shared<CalibrateOptions>();
  options->words = words;
  command->add_flag("--quick", options->quick, "At most half a minute");
  command->add_option("--ranks", options->ranks, "Ranks that measure at once")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", options->device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("--base", options->base,
                      "Calibration whose constants stay where not measured");
  command->add_option("-o,--output", options->output, "File to write");
  command->callback([options] { calibrate(*options); });
}

}  // namespace tessera
