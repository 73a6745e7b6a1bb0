#include "executor/reshard/choose_path.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/stopwatch.h"
#include "executor/reshard/gather_path.h"
#include "executor/reshard/message_path.h"
#include "executor/reshard/read_path.h"

namespace tessera {
namespace {

using Paths = std::vector<std::unique_ptr<ReshardPath>>;

/// The paths that can move everything, in the order in which they are tried.
Paths possible_paths(const PathSetup& setup) {
  std::unique_ptr<GatherPath> gathers;
  if (setup.can_stage()) gathers = std::make_unique<GatherPath>(setup);
  Paths paths;
  paths.push_back(std::make_unique<MessagePath>(setup));
  if (gathers && !gathers->nothing()) paths.push_back(std::move(gathers));
  if (setup.can_read()) paths.push_back(make_read_path(setup));
  return paths;
}

/// GPUs of one host: copy engines were faster in every pair measured (benchmarks/results).
std::unique_ptr<ReshardPath> make_path_without_trial(const PathSetup& setup) {
  const bool one_host = setup.can_read() && setup.site.make_block && setup.signals.usable();
  if (setup.ranks() > 1 && !one_host && setup.moves_all_as_they_are()) return nullptr;
  if (setup.can_read()) return make_read_path(setup);
  return std::make_unique<MessagePath>(setup);
}

}  // namespace

std::unique_ptr<ReshardPath> make_read_path(const PathSetup& setup) {
  return std::make_unique<ReadPath>(setup);
}

std::unique_ptr<ReshardPath> make_path(const PathSetup& setup) {
  const ReshardTransport wanted = setup.options.transport;
  switch (wanted) {
    case ReshardTransport::copy_engine:
    case ReshardTransport::host:
      if (setup.can_read()) return make_read_path(setup);
      throw Error(ExitCode::usage, "reshard: " + std::string(name_of(wanted)) +
                                       " needs source memory that peers can map");
    case ReshardTransport::all_gather:
    case ReshardTransport::window:
      if (setup.moves_all_as_they_are() && setup.can_stage()) {
        return std::make_unique<GatherPath>(setup);
      }
      throw Error(ExitCode::usage, "reshard: all-gathers move all weights as they are");
    case ReshardTransport::send_recv:
      return std::make_unique<MessagePath>(setup);
    case ReshardTransport::automatic:
      break;
  }
  return make_path_without_trial(setup);
}

std::unique_ptr<ReshardPath> fastest_path(const PathSetup& setup,
                                          const std::function<void(ReshardPath&)>& run,
                                          const std::function<void()>& barrier,
                                          std::vector<ReshardReport::Trial>& tried) {
  Paths paths = possible_paths(setup);
  std::vector<float> seconds;
  for (const std::unique_ptr<ReshardPath>& path : paths) {
    if (!reads_peers(path->transport())) {  // before new stages are made
      for (const std::unique_ptr<ReshardPath>& other : paths) other->rest();
    }
    run(*path);
    barrier();
    const Stopwatch watch;
    run(*path);
    barrier();
    seconds.push_back(static_cast<float>(watch.seconds()));
  }
  setup.site.host->all_reduce(seconds.data(), seconds.size(), DType::fp32, ReduceOp::max);
  for (std::size_t i = 0; paths.size() > 1 && i < paths.size(); ++i) {
    tried.push_back({paths[i]->transport(), seconds[i]});
  }
  const auto fastest = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
  return std::move(paths[static_cast<std::size_t>(fastest)]);
}

}  // namespace tessera
