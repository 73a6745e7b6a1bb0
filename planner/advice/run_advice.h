// What to change about a run, by seconds that the learned constants predict.
//
// The planner plans again with the run's layout as the base: every setting stays as it ran but for
// a few that are free, one at a time, those of a role, those of all roles but the rollout, all.
// Prices are the planner's own, with the lengths that the run measured. Pure functions;
// seconds.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct Plan;
class ConfigValues;

/// One change of the run's plan.
struct AdvisedChange {
  std::string what;                   // "actor.recompute full -> none, actor.tokens 8192 -> 16384"
  std::vector<std::string> settings;  // that fix the whole plan, as --fix reads them
  Seconds step_s;
  Seconds gain_s, gain_deviation_s;  // against the run as it is, and one standard deviation
  double fits = 1;                   // the probability that its memory suffices
  /// Of an engine that Tessera exports to: keys of its script that change, "KEY: OLD -> NEW".
  std::vector<std::string> keys;
};

struct RunAdvice {
  Seconds measured_s;
  Seconds step_s;                      // of the run as it is, by the learned constants
  std::vector<AdvisedChange> changes;  // quickest first, at most eight
};

/// `ran`: the run's plan, with the lengths that it measured. Precondition: `learned` is of its
/// devices. `script`: the one that `ran` was read from, whose keys then change; nullptr: none.
/// Limits of tokens hold the longest sequence, without which verl would end. Throws Stopped
/// (cost_models/documents/stopped.h).
RunAdvice advise(const Plan& ran, Seconds measured_s, const Calibration& learned,
                 const ConfigValues* script = nullptr, const std::stop_token& stop = {});

/// The command that plans the change. Files as below.
std::string command_of(const AdvisedChange& change, const std::string& plan,
                       const std::string& calibration);
/// `plan`, `calibration`: files that hold the run's plan and the learned constants, for the
/// commands.
std::string to_text(const RunAdvice& advice, const std::string& plan,
                    const std::string& calibration);
/// docs/schemas/advice.schema.json.
std::string to_json(const RunAdvice& advice, const std::string& plan,
                    const std::string& calibration);

}  // namespace tessera
