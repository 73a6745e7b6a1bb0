#include "executor/commands/bench_run.h"
#include "executor/comm/nccl_world.h"

#include <cuda_runtime_api.h>
#include <torch/version.h>
#include "executor/tensor/torch.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "executor/launch/relaunch.h"

namespace tessera {
namespace {

using nlohmann::json;

/// The machine's description, which a reader needs to place the figures.
json description(const BenchSite& site) {
  json made{{"date", utc_now()}, {"ranks", site.host->size()}};
  json& versions = made["versions"];
  versions = {{"tessera", TESSERA_VERSION}, {"torch", TORCH_VERSION}};
  if (site.gpu()) {
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, site.device.index());
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    made["device"] = std::to_string(site.host->size()) + " x " + properties.name;
    versions["cuda_driver"] = driver, versions["cuda_runtime"] = runtime;
  } else {
    made["device"] = "cpu, " + std::to_string(std::thread::hardware_concurrency()) + " cores";
  }
  return made;
}

void write(const json& result, const std::string& file) {
  if (file.empty()) return;
  std::ofstream out(file, std::ios::binary);
  out << result.dump(1) << "\n";
  if (!out.flush()) throw Error(ExitCode::io, "cannot write " + file);
}

}  // namespace

ModelSpec bench_model(const std::string& name) {
  Problems problems;
  std::optional<ModelSpec> model;
  if (const auto where = find_config(name, "models", "", problems)) {
    model = read_model_spec(*where, problems);
  }
  if (!model) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(model);
}

void run_bench(const BenchStart& options, const std::string& what, const BenchBody& measure,
               const BenchTable& table) {
  if (options.ranks > 1 && !launched()) {
    const int gpus = cuda_device_count();
    relaunch(options.words, options.ranks, get_gpus(options.device, options.ranks, gpus));
  }
  RankSetup setup = set_up_rank(options.device);
  const torch::NoGradGuard no_grad;
  const BenchSite site{.world = setup.world.get(),
                       .host = &setup.host(),
                       .device = setup.device,
                       .stream = setup.stream};
  json result = description(site);
  result["what"] = "tessera bench " + what;
  std::string line = "tessera";
  for (const std::string& word : on_device(options.words, site.gpu())) line += " " + word;
  result["command"] = line;
  result["figures"] = measure(setup, site);
  if (setup.rank != 0) return;
  std::printf("%s", table(result["figures"]).c_str());
  write(result, options.output);
}

}  // namespace tessera
