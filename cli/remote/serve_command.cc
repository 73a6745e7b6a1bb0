// tessera serve: lets the window of another host look at runs of this one, through a tunnel.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cost_models/documents/problem.h"
#include "simulator/remote/remote_name.h"
#include "simulator/remote/run_server.h"
#include "simulator/remote/serve_token.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct ServeCommand {
  std::vector<std::string> runs;
  int port = 0;
  std::string token_file;
  bool read_only = false;
};

std::vector<ServedRun> served_runs(const std::vector<std::string>& folders) {
  std::vector<ServedRun> runs;
  Problems problems;
  for (const std::string& folder : folders) {
    std::error_code error;
    const fs::path whole = fs::canonical(folder, error);
    const std::string name = whole.filename();
    if (error || !fs::is_directory(whole, error)) {
      problems.push_back({folder, "", "no such folder", "the folder of a run", ""});
    } else if (!is_run_name(name)) {
      problems.push_back({folder, "", "a folder without a plain name", "the folder of a run", ""});
    }
    for (const ServedRun& other : runs) {
      if (other.name != name) continue;
      problems.push_back(
          {folder, "", "a second folder that is called " + name, "folders of different names", ""});
    }
    runs.push_back({name, whole});
  }
  if (!problems.empty()) throw Error(std::move(problems));
  return runs;
}

void serve(const ServeCommand& command) {
  std::vector<ServedRun> runs = served_runs(command.runs);
  const fs::path file = command.token_file.empty() ? token_file() : fs::path(command.token_file);
  const std::string token = kept_token(file);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  RunServer server(command.port, token, runs,
                   command.read_only ? ServeRights::read : ServeRights::read_and_signal);
  for (const ServedRun& run : runs) std::printf("run    %s\n", run.name.c_str());
  std::printf("at     127.0.0.1:%d\ntoken  %s\nkept   %s\n", server.port(), token.c_str(),
              file.c_str());
  std::printf("tunnel ssh -N -L %d:127.0.0.1:%d %s\nlook   tessera gui --remote 127.0.0.1:%d\n",
              server.port(), server.port(), host.data(), server.port());
  std::fflush(stdout);
  server.run();
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("serve", "Let a window elsewhere look at runs, pause and stop them");
  auto all = std::make_shared<ServeCommand>();
  command->add_option("run", all->runs, "Folders of runs")->required();
  command->add_option("--port", all->port, "Port of 127.0.0.1; 0 = a free one")
      ->check(CLI::Range(0, 65535));
  command->add_option("--token-file", all->token_file,
                      "File of the token; made where there is none");
  command->add_flag("--read-only", all->read_only,
                    "Whoever has the token may look, and neither pause nor stop a run");
  command->callback([all] { serve(*all); });
}

}  // namespace tessera
