// tessera-run start: the launcher of ranks on GPUs of one host.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/commands/commands.h"
#include "executor/launch/local_ranks.h"
#include "executor/launch/relaunch.h"

namespace tessera {

void add_start(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "start", "Start ranks on this host: start --ranks N train ..., as torchrun would");
  auto ranks = std::make_shared<int>(0);
  command->add_option("--ranks", *ranks, "Ranks, one GPU each")
      ->required()
      ->check(CLI::Range(1, 1024));
  command->prefix_command();  // all that follows is the ranks' command
  command->callback([command, ranks] {
    std::vector<std::string> line = command->remaining();
    if (line.empty())
      throw Error(ExitCode::usage, "start needs the ranks' command behind its own options");
    line.insert(line.begin(), own_path());
    const int code = run_local_ranks(line, *ranks);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
