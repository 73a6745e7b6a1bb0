// tessera-run: everything that needs torch. `tessera COMMAND` and launchers start it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "cost_models/documents/command_line.h"
#include "cost_models/documents/problem.h"
#include "executor/comm/communicator.h"
#include "executor/commands/commands.h"
#include "executor/launch/launch_environment.h"

namespace {

int parse(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  CLI::App app{"Carries out plans, and measures.", "tessera"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  tessera::add_train(app);
  tessera::add_start(app);
  tessera::add_bench(app, words);
  tessera::add_calibrate(app, words);
  tessera::add_init_model(app);
  tessera::add_make_data(app);
  tessera::add_tokenize(app);
  tessera::add_train_reward(app, words);
  tessera::add_verify_weights(app);
  return tessera::run_command_line(app, argc, argv);
}

/// Whether this rank says what every rank finds alike: rank 0 does so for all.
bool speaks() {
  tessera::Problems ignored;
  return tessera::read_launch_environment(tessera::process_environment(), ignored).rank == 0;
}

int fail(const char* what, tessera::ExitCode code) {
  if (code != tessera::ExitCode::bad_input || speaks()) {
    std::fprintf(stderr, "tessera: %s\n", what);
  }
  return static_cast<int>(code);
}

int exit_code_of(int argc, char** argv) {
  try {
    return parse(argc, argv);
  } catch (const tessera::Error& error) {
    return fail(error.what(), error.code());
  } catch (const tessera::PeerLost& lost) {
    return fail(lost.what(), tessera::ExitCode::peer_lost);
  } catch (const std::exception& error) {
    return fail(error.what(), tessera::ExitCode::internal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = exit_code_of(argc, argv);
  // Taking down torch's tables of operators takes every rank a tenth of a second, for nothing.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}
