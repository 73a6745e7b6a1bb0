// SPDX-License-Identifier: GPL-3.0-or-later
// In what the settings of runs differ, by what their folders hold: run.yaml, key by key, and the
// layouts of plan.json.
//
// Reads files of a few MB at most: for a thread of its own. Values are texts.
#pragma once

#include <QString>
#include <QStringList>
#include <filesystem>
#include <map>
#include <vector>

namespace tessera::gui {

/// By name: "actor.optim.lr" -> "1e-06", "plan: actor" -> "tp2 pp1 dp4"; empty where the folder has
/// neither file, or none that can be read.
using RunSettings = std::map<QString, QString>;
RunSettings settings_of_run(const std::filesystem::path& run);

struct SettingApart {
  QString name;
  QStringList values;  // by run; empty: it states none
};
/// Those that are not the same in all runs, by name.
std::vector<SettingApart> settings_apart(const std::vector<RunSettings>& runs);

}  // namespace tessera::gui
