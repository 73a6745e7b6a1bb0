#include "executor/launch/stop_signals.h"

#include <signal.h>

#include <atomic>

namespace tessera {
namespace {

std::atomic<std::int32_t> noted = 0;  // a StopReason

void note(int signal) {
  const auto reason =
      static_cast<std::int32_t>(signal == SIGUSR1 ? StopReason::requeue : StopReason::stop);
  if (reason > noted) noted = reason;
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // libraries do not expect to be interrupted
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void watch_stop_signals(bool all) {
  handle(SIGUSR1);
  if (!all) return;
  handle(SIGTERM);
  handle(SIGINT);
}

StopReason stop_signalled() { return static_cast<StopReason>(noted.load()); }

}  // namespace tessera
