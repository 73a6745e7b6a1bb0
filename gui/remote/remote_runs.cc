// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/remote/remote_runs.h"

#include <QStandardPaths>
#include <cstdlib>
#include <system_error>

#include "cost_models/documents/problem.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "simulator/remote/run_client.h"
#include "simulator/remote/run_listing.h"
#include "simulator/remote/serve_token.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostNames = std::size_t{1} << 20;

}  // namespace

ServedRuns served_runs(int port, const std::string& token, const std::stop_token& stop) {
  const QString address = toText(address_of({port, {}}));
  const RunReply reply = RunClient(port, token).get("/runs", {}, kMostNames, stop);
  if (!reply.fault.empty()) return {Contact::unreached, address + ": " + toText(reply.fault), {}};
  if (reply.status == 401)
    return {Contact::denied, Words::tr("%1: the token is refused").arg(address), {}};
  Problems problems;
  const auto names = runs_from(reply.body, address.toStdString(), problems);
  if (reply.status != 200 || !names) {
    return {Contact::wrong, Words::tr("no tessera serve answers at %1").arg(address), {}};
  }
  ServedRuns runs{Contact::reached, {}, {}};
  for (const std::string& name : *names) runs.names << QString::fromStdString(name);
  return runs;
}

std::filesystem::path copies_folder() {
  const QString cache = QStandardPaths::writableLocation(QStandardPaths::CacheLocation);
  return run_folder((cache + "/runs").toStdString());
}

std::optional<RemoteName> copied_run(const std::filesystem::path& folder) {
  const std::filesystem::path cache = copies_folder();
  if (folder.parent_path().parent_path() != cache) return std::nullopt;
  const auto state = read_mirror_state(folder);
  if (!state || mirror_folder(state->name, cache) != folder) return std::nullopt;
  return state->name;
}

QString placeText(const std::filesystem::path& folder) {
  if (const auto remote = copied_run(folder)) return QString::fromStdString(to_text(*remote));
  std::error_code error;
  const std::filesystem::path below =
      folder.lexically_relative(std::filesystem::current_path(error));
  const bool inside = !error && !below.empty() && *below.begin() != ".." && below != ".";
  return QString::fromStdString((inside ? below : folder).string());
}

std::string token_of_environment() {
  const char* given = std::getenv(kTokenVariable);
  return given != nullptr && is_token(given) ? given : "";
}

}  // namespace tessera::gui
