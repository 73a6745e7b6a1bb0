// How surely a plan fits, and what more safety costs, as text and as JSON.
//
// Pure functions over the plan's own numbers (pricing/memory_limit.h); nothing is searched.
#pragma once

#include <string>

#include "cost_models/documents/strict_json.h"

namespace tessera {

struct Calibration;
struct Plan;

/// "98.4 %", of a plan that fits with this probability; "more than 99.9 %" where measurements say
/// no more than that.
std::string fit_text(const Plan& plan, double probability);

/// Two lines: the probability with the error bar of the fullest rank and what it was measured on,
/// and the best plan one step of safety further, where the plan states it.
std::string describe_fit(const Plan& plan, const Calibration& calibration);

/// The same: probability, risk, held_bytes, deviation_bytes, device_bytes, measured, source and,
/// where the plan states it, safer.
Node fit_node(const Plan& plan, const Calibration& calibration);

}  // namespace tessera
