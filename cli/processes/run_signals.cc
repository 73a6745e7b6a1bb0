#include "cli/processes/run_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "simulator/run_end/end_cause.h"

namespace tessera {
namespace {

std::atomic<int> interrupts = 0;
std::atomic<bool> hung_up = false;
std::atomic<bool> requeue = false;
std::atomic<bool> go_on = false;

void note(int signal) {
  if (signal == SIGUSR1) {
    requeue = true;
  } else if (signal == SIGUSR2) {
    go_on = true;
  } else if (signal == SIGHUP) {
    hung_up = true;
  } else {
    ++interrupts;
  }
}

/// Only calls that are safe in a handler.
void end(int signal) {
  if (signal == SIGUSR2) return;  // nothing pauses yet
  const StopReason reason = signal == SIGUSR1 ? StopReason::requeue : StopReason::stop;
  const std::string_view words = words_of_early_end(reason);
  // Who reads it may be gone.
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) {
  }
  ::_exit(static_cast<int>(exit_code_of(reason)));
}

void handle_all(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // files are read meanwhile
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
    ::sigaction(signal, &action, nullptr);
  }
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

void end_on_run_signals() { handle_all(end); }

void watch_run_signals() {
  interrupts = 0;
  hung_up = false;
  requeue = false;
  go_on = false;
  handle_all(note);
}

StopReason asked_to_stop() {
  if (requeue) return StopReason::requeue;
  return interrupts > 0 || hung_up ? StopReason::stop : StopReason::none;
}

bool asked_to_kill() { return interrupts > 1; }

bool asked_to_go_on() { return go_on.exchange(false); }

std::string_view words_of_early_end(StopReason reason) {
  return reason == StopReason::requeue ? "tessera: to be queued again; no rank had started\n"
                                       : "tessera: stopped by the user; no rank had started\n";
}

}  // namespace tessera
