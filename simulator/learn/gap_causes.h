// Why a phase is likely to have taken another time than predicted: a table of rules.
//
// Pure. The rows are tried in their order, the first that holds is the cause.
#pragma once

#include <string>

#include "cost_models/spec/workload.h"

namespace tessera {

/// All that is known of one gap. Seconds; 0 where it does not apply.
struct GapFacts {
  std::string what;
  Phase phase = Phase::gen;
  bool on_processors = false;  // its ranks share these
  bool outside = false;        // of all phases that the run timed
  bool waited = false;         // the measured time is the trainer's wait for a phase beside it
  bool by_programs = false;    // the user's own reward functions ran in it, which no plan knows
  std::string other_devices;   // why its time says nothing of the run: it is of other devices
  std::string untimed;         // of what lies outside: the plan's phases without a time
  double untimed_s = 0;        // predicted for them
  double predicted_s = 0, measured_s = 0;
  double predicted_deviation_s = 0;                // by the constants
  double measured_deviation_s = 0;                 // of the mean
  double at_measured_lengths_s = 0;                // predicted for the lengths that the run had
  double planned_tokens = 0, measured_tokens = 0;  // of a response, mean
  double planned_prompt = 0, measured_prompt = 0;  // tokens of a prompt, mean
  double handover_s = 0;       // software's part of the prediction, of a reshard
  double reserved_part = 0;    // of the device, by the allocator at its peak
  double communication_s = 0;  // exposed, predicted
  CallKind kind = CallKind::compute;
  std::string constant;   // on which the phase depends most
  double constant_s = 0;  // seconds for one per cent of it

  double gap_s() const { return measured_s - predicted_s; }
};

std::string cause_of(const GapFacts& facts);

}  // namespace tessera
