#include "cli/processes/run_signals.h"

#include <signal.h>

#include <atomic>

namespace tessera {
namespace {

std::atomic<int> interrupts = 0;
std::atomic<bool> requeue = false;
std::atomic<bool> go_on = false;

void on_signal(int signal) {
  if (signal == SIGUSR1) {
    requeue = true;
  } else if (signal == SIGUSR2) {
    go_on = true;
  } else {
    ++interrupts;
  }
}

}  // namespace

void watch_run_signals() {
  interrupts = 0;
  requeue = false;
  go_on = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // files are read meanwhile
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
    ::sigaction(signal, &action, nullptr);
  }
}

StopReason asked_to_stop() {
  if (requeue) return StopReason::requeue;
  return interrupts > 0 ? StopReason::stop : StopReason::none;
}

bool asked_to_kill() { return interrupts > 1; }

bool asked_to_go_on() { return go_on.exchange(false); }

ExitCode exit_code_of(StopReason reason) {
  return reason == StopReason::requeue ? ExitCode::requeue : ExitCode::stopped;
}

std::string words_of_early_end(StopReason reason) {
  return reason == StopReason::requeue ? "to be queued again; no rank had started"
                                       : "stopped by the user; no rank had started";
}

void end_if_asked() {
  const StopReason reason = asked_to_stop();
  if (reason != StopReason::none) throw Error(exit_code_of(reason), words_of_early_end(reason));
}

}  // namespace tessera
