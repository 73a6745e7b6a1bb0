// tessera mirror: keeps a copy of a run that tessera serve shows, for the window of this host.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "cli/commands.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"
#include "simulator/remote/run_mirror.h"
#include "simulator/remote/serve_token.h"

namespace tessera {
namespace {

using std::chrono::seconds;

constexpr seconds kPause{1}, kMostPause{16};

struct MirrorCommand {
  std::string from, folder, token_file;
  bool once = false;
};

std::string token_of(const MirrorCommand& command) {
  const char* given = std::getenv(kTokenVariable);
  if (command.token_file.empty() && given != nullptr && is_token(given)) return given;
  if (command.token_file.empty()) {
    throw Error({{kTokenVariable, "", given == nullptr ? "no such variable" : "something else",
                  "a token: 64 hexadecimal digits", "or say --token-file"}});
  }
  Problems problems;
  const auto token = read_token(command.token_file, problems);
  if (!token) throw Error(std::move(problems));
  return *token;
}

/// Ends where it is to be done once, and where waiting changes nothing.
void mirror(const MirrorCommand& command) {
  const auto name = remote_name_from(command.from);
  if (!name) {
    throw Error(ExitCode::usage,
                "'" + command.from + "' is no 127.0.0.1:PORT or 127.0.0.1:PORT/RUN");
  }
  RunMirror copy(*name, token_of(command), command.folder);
  std::string said;
  bool told = false;
  for (seconds pause = kPause;;) {
    const MirrorNews news = copy.contact();
    const bool reached = news.contact == Contact::reached;
    if (reached && !told) std::printf("%s\n", copy.folder().c_str());
    told = told || reached;
    const std::string fault = printable(news.fault, LineEnds::kept);
    if (!reached && (command.once || news.contact == Contact::denied)) {
      throw Error(news.contact == Contact::denied ? ExitCode::bad_input : ExitCode::io,
                  address_of(*name) + ": " + fault);
    }
    if (fault != said) {
      std::fprintf(stderr, "%s: %s\n", address_of(*name).c_str(),
                   fault.empty() ? "reached again" : fault.c_str());
    }
    said = fault;
    std::fflush(stdout);
    if (reached && news.missing_bytes > 0) continue;
    if (command.once) return;
    if (reached) pause = kPause;
    std::this_thread::sleep_for(pause);
    if (!reached) pause = std::min(2 * pause, kMostPause);
  }
}

}  // namespace

void add_mirror(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("mirror", "Keep a copy of a run that tessera serve shows elsewhere");
  auto all = std::make_shared<MirrorCommand>();
  command->add_option("from", all->from, "127.0.0.1:PORT of a tunnel, or 127.0.0.1:PORT/RUN")
      ->required();
  command->add_option("-o,--output", all->folder, "Folder that copies are kept in")->required();
  command->add_option("--token-file", all->token_file,
                      "File of the token; else it is in TESSERA_REMOTE_TOKEN");
  command->add_flag("--once", all->once, "End once the copy is complete");
  command->callback([all] { mirror(*all); });
}

}  // namespace tessera
