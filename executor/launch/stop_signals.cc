#include "executor/launch/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::atomic<std::int32_t> noted = 0;  // a StopReason

void note(int signal) {
  const auto reason =
      static_cast<std::int32_t>(signal == SIGUSR1 ? StopReason::requeue : StopReason::stop);
  if (reason > noted) noted = reason;
}

void end(int signal) {
  ::_exit(static_cast<int>(signal == SIGUSR1 ? ExitCode::requeue : ExitCode::stopped));
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // libraries do not expect to be interrupted
  ::sigaction(signal, &action, nullptr);
}

void handle_all(bool all, void (*handler)(int)) {
  handle(SIGUSR1, handler);
  if (!all) return;
  handle(SIGTERM, handler);
  handle(SIGINT, handler);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) handle(SIGHUP, handler);  // nohup has it ignored
}

}  // namespace

void end_on_stop_signals(bool all) { handle_all(all, end); }

void watch_stop_signals(bool all) { handle_all(all, note); }

StopReason stop_signalled() { return static_cast<StopReason>(noted.load()); }

}  // namespace tessera
