// tessera: plans, simulates, compares; starts the executor and the window for everything else.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/dispatch.h"
#include "cli/processes/run_signals.h"
#include "cost_models/documents/command_line.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace {

int report(const tessera::Error& error) {
  std::fprintf(stderr, "tessera: %s\n", error.what());
  return static_cast<int>(error.code());
}

int parse(int argc, char** argv) {
  CLI::App app{"Plans, simulates and runs the parallelism of LLM reinforcement learning.",
               "tessera"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  tessera::add_plan(app);
  tessera::add_explain(app);
  tessera::add_simulate(app);
  tessera::add_reshard(app);
  tessera::add_run(app);
  tessera::add_signal(app);
  tessera::add_serve(app);
  tessera::add_mirror(app);
  tessera::add_compare(app);
  tessera::add_learn(app);
  tessera::add_advise(app);
  tessera::add_doctor(app);
  tessera::add_sweep(app);
  tessera::add_export(app);
  tessera::add_import(app);
  tessera::add_list(app);
  // Commands inherit the footer that their parent has when they are added: theirs are their own.
  app.footer(tessera::external_commands_help());
  return tessera::run_command_line(app, argc, argv, tessera::external_commands());
}

}  // namespace

int main(int argc, char** argv) {
  // First of all: whoever stops a run may do so at any moment of it.
  if (argc > 1 && std::string_view(argv[1]) == "run") tessera::end_on_run_signals();
  try {
    // Commands of the executor and the window live in programs of their own, as git's do.
    if (argc > 1 && tessera::is_external_command(argv[1])) {
      return tessera::run_external_command(argc, argv);
    }
    return parse(argc, argv);
  } catch (const tessera::Error& error) {
    return report(error);
  } catch (const std::exception& error) {
    const std::string what = tessera::printable(error.what(), tessera::LineEnds::kept);
    std::fprintf(stderr, "tessera: internal error: %s\n", what.c_str());
    return static_cast<int>(tessera::ExitCode::internal);
  }
}
