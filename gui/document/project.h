// SPDX-License-Identifier: GPL-3.0-or-later
// A project: a question, the plans that are kept beside one another, and runs, in one JSON file
// (docs/inputs/project.md).
//
// Data alone: names, numbers, whole plans, folders and loopback addresses to be read. Nothing in it
// is run. Written whole beside the old file and moved into its place: a crash leaves the one or the
// other.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"
#include "simulator/remote/remote_name.h"

namespace tessera::gui {

/// A run: its folder, or where it is served on another host.
using RunPlace = std::variant<std::filesystem::path, RemoteName>;

/// Runs of a project that may not be shown, as they are not here just now or have no step so far,
/// by their places in its list.
using UnreachedRuns = std::map<std::size_t, RunPlace>;

struct Project {
  static constexpr std::size_t kMostPinned = 4, kMostRuns = 5;
  /// Of a file: five plans of the largest clusters.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

  std::optional<PlanQuery> question;  // nullopt: nothing was asked so far
  std::vector<SharedPlan> pinned;     // in the order of their columns
  std::vector<RunPlace> runs;         // followed the first that is there, the others beside it
};

/// Puts them among the runs that are followed, none before place `first`.
void add_unreached(std::vector<RunPlace>& runs, const UnreachedRuns& unreached, std::size_t first);

/// By what is asked, pinned and followed; plans by their values.
bool operator==(const Project& a, const Project& b);

/// Runs that the file names by relative paths are below its folder. nullopt and Problems where
/// anything in it is wrong.
std::optional<Project> read_project(const std::filesystem::path& file, Problems& problems);
/// Runs below the file's folder are named relative to it, so that both can be moved together.
/// Throws Error(io); a file that was there is unchanged then.
void write_project(const Project& project, const std::filesystem::path& file);

}  // namespace tessera::gui
