// A rank without a model: steps through phases with a barrier in each, over MPI.
//
// usage: fake_rank RUN [--kill RANK PHASE] [--fail RANK CODE] [--stop RANK PHASE]
//                  [--spin RANK PHASE] [--deaf]
// --kill: the rank takes SIGKILL in that phase of step 2. --fail: it ends with that code there.
// --stop: it stops itself (SIGSTOP) in that phase of step 2; --spin: it never leaves that phase.
// --deaf: never looks for RUN/stop.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/mpi_world.h"
#include "executor/comm/recorded_communicator.h"
#include "simulator/timeline/rank_status.h"

int main(int argc, char** argv) {
  using namespace tessera;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string& run = words.at(0);
  const std::string action = words.size() > 1 ? words[1] : "";
  const int target = words.size() > 3 ? std::atoi(words[2].c_str()) : -1;
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  std::atomic<bool> waiting = false;
  const bool stalls = action == "--stop" || action == "--spin";
  const double limit_s = stalls ? 3 : 20;
  RankStatusFile status(run, rank, {.stall_limit_s = limit_s, .waiting = &waiting});
  FlightRecorder recorder;
  recorder.keep_in(run, rank);
  int code = 0;
  try {
    const auto world =
        recorded(open_mpi_world({.waiting = &waiting, .timeout_s = limit_s}), recorder);
    for (int step = 1; step <= 400; ++step) {
      for (const char* phase : {"gen", "reshard", "update_actor"}) {
        status.enter(phase, step);
        recorder.enter(phase, step);
        if (action == "--kill" && rank == target && step == 2 && words[3] == phase) {
          ::raise(SIGKILL);
        }
        if (stalls && rank == target && step == 2 && words[3] == phase) {
          if (action == "--stop") ::raise(SIGSTOP);
          while (action == "--spin") std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (action == "--fail" && rank == target && step == 2) {
          status.finish(std::atoi(words[3].c_str()));
          return std::atoi(words[3].c_str());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        int stop = action != "--deaf" && stop_requested(run) ? 1 : 0;
        world->all_reduce(&stop, 1, DType::int32, ReduceOp::max);
        if (stop != 0) {
          status.finish(130);
          return 130;
        }
      }
      if (action == "--short" && step == 2) break;
    }
  } catch (const PeerLost&) {
    code = 75;
  }
  status.finish(code);
  return code;
}
