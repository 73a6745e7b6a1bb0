// A simulation's results, for people and for programs.
//
// Text: phases with their share and idle time, what the critical path is made of, exposed
// communication, the peak of every rank against what its device can give, and where
// several draws were asked for how the step spreads over them. JSON: the same facts and
// the critical path task by task. A trace for Perfetto. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/simulate.h"
#include "simulator/engine/spread.h"

namespace tessera {

struct Plan;

/// Tasks of one kind and phase on the critical path, together.
struct PathShare {
  Phase phase = Phase::gen;
  std::string name;  // "F", "decode", "reduce gradients": the task's without its numbers
  std::int64_t tasks = 0;
  double seconds = 0;
  bool operator==(const PathShare&) const = default;
};

/// The largest first.
std::vector<PathShare> path_shares(const Simulation& simulation);

/// The simulated step as a trace (timeline.h), with the load of links in per cent of what they
/// carry at most. Where `most_events` is given, links have a quarter of them: those that carry
/// most.
std::string to_chrome_trace(const Simulation& simulation, std::size_t most_events = 0);

/// `spread`: over further draws of the lengths, where these were simulated, too.
std::string to_text(const Simulation& simulation, const Plan& plan, const Calibration& calibration,
                    const std::optional<StepSpread>& spread = std::nullopt);
std::string to_json(const Simulation& simulation, const Plan& plan, const Calibration& calibration,
                    const std::optional<StepSpread>& spread = std::nullopt);

}  // namespace tessera
