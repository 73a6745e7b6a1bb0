// SPDX-License-Identifier: GPL-3.0-or-later
// What the window knows of runs on other hosts: which ones a server has, where their copies are,
// and the token that it was started with. Free functions; any thread.
#pragma once

#include <QString>
#include <QStringList>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "simulator/remote/remote_name.h"
#include "simulator/remote/run_mirror.h"

namespace tessera::gui {

/// The runs that are served at a port of this host, or why they are not known.
struct ServedRuns {
  Contact contact = Contact::unreached;
  QString fault;  // unless reached
  QStringList names;
};
ServedRuns served_runs(int port, const std::string& token, const std::stop_token& stop);

/// Where the window keeps copies: below the user's cache.
std::filesystem::path copies_folder();
/// The run that the folder is the window's copy of; nullopt where it is none.
std::optional<RemoteName> copied_run(const std::filesystem::path& folder);
/// The name of the copied run, as it is remembered and shown ("remote:127.0.0.1:7070/RUN"), else
/// the folder's: below the one that the window was started in from there on.
QString placeText(const std::filesystem::path& folder);

/// TESSERA_REMOTE_TOKEN; empty where it holds none.
std::string token_of_environment();

}  // namespace tessera::gui
