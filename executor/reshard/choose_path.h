// The choice of a reshard's path: by the transport that is wanted, or the fastest one of a trial.
//
// Collective and alike on every rank.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/reshard/reshard_path.h"
#include "executor/reshard/reshard_report.h"

namespace tessera {

/// The path of the options' transport; nullptr: automatic, and the first reshard has to try
/// (fastest_path). Throws Error (usage) where the site or the options exclude the transport.
std::unique_ptr<ReshardPath> make_path(const PathSetup& setup);

/// Reads peers' memory, whatever the options name.
std::unique_ptr<ReshardPath> make_read_path(const PathSetup& setup);

/// Every path that can move everything is run twice by `run`, since the first time connects; the
/// fastest one by the slowest rank stays. What each took is told where there were several.
std::unique_ptr<ReshardPath> fastest_path(const PathSetup& setup,
                                          const std::function<void(ReshardPath&)>& run,
                                          const std::function<void()>& barrier,
                                          std::vector<ReshardReport::Trial>& tried);

}  // namespace tessera
