// tessera signal: what a person tells a run that goes on, through files in its folder.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cost_models/documents/problem.h"
#include "simulator/remote/mirror_state.h"
#include "simulator/timeline/run_signal.h"

namespace tessera {

void add_signal(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("signal", "Lets a run pause, go on, stop, or be queued again");
  struct Options {
    std::string run, word;
  };
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Folder of the run")->required();
  std::vector<std::string> words;
  for (const RunSignal signal : kEveryRunSignal) words.emplace_back(name_of(signal));
  command->add_option("signal", options->word, "pause, go, stop or requeue")
      ->required()
      ->check(CLI::IsMember(words));
  command->callback([options] {
    if (const auto copy = read_mirror_state(options->run)) {
      throw Error({{options->run, "", "a copy of " + to_text(copy->name),
                    "the folder of the run, on its host", ""}});
    }
    send_signal(options->run, run_signal_from(options->word).value(), "tessera signal");
  });
}

}  // namespace tessera
