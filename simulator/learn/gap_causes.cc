#include "simulator/learn/gap_causes.h"

#include <array>
#include <cmath>

#include "cost_models/documents/printed.h"

namespace tessera {
namespace {

constexpr double kNoSeconds = 5e-7;  // of a phase, by a per cent of a constant

struct GapRule {
  bool (*holds)(const GapFacts& facts);
  std::string (*cause)(const GapFacts& facts);
};

bool lengths_explain(const GapFacts& facts) {
  const double explained = facts.at_measured_lengths_s - facts.predicted_s;
  return (facts.measured_tokens > 0 || facts.measured_prompt > 0) &&
         explained * facts.gap_s() > 0 && std::abs(explained) >= 0.5 * std::abs(facts.gap_s());
}

std::string other_lengths(const GapFacts& facts) {
  std::string text;
  const auto add = [&](const char* what, double measured, double planned) {
    if (measured <= 0 || std::abs(measured - planned) < 0.5) return;
    text += text.empty() ? "" : ", ";
    text += printed("%s of %.0f tokens where the plan has %.0f", what, measured, planned);
  };
  add("responses", facts.measured_tokens, facts.planned_tokens);
  add("prompts", facts.measured_prompt, facts.planned_prompt);
  if (text.empty()) text = "responses of another spread than the plan's";
  return text + printed(": with those %.3f s are predicted", facts.at_measured_lengths_s);
}

constexpr std::array<GapRule, 15> kRules = {{
    {[](const GapFacts& facts) { return facts.outside && !facts.untimed.empty(); },
     [](const GapFacts& facts) {
       return "phases that the run does not time lie in it: " + facts.untimed +
              printed(" (%.3f s predicted)", facts.untimed_s);
     }},
    {[](const GapFacts& facts) { return facts.outside; },
     [](const GapFacts&) {
       return std::string(
           "between the calls: data, logging, validation, saving; no call of the "
           "plan's");
     }},
    {[](const GapFacts& facts) { return facts.waited; },
     [](const GapFacts&) {
       return std::string("it runs beside the trainer: the log has the wait for it, not its time");
     }},
    {[](const GapFacts& facts) { return facts.by_programs; },
     [](const GapFacts&) {
       return std::string("the plan has no price for the user's reward functions");
     }},
    {[](const GapFacts& facts) { return !facts.other_devices.empty(); },
     [](const GapFacts& facts) { return facts.other_devices; }},
    {lengths_explain, other_lengths},
    {[](const GapFacts& facts) { return facts.predicted_s <= 0; },
     [](const GapFacts&) { return std::string("the plan has no price for it"); }},
    {[](const GapFacts& facts) { return std::abs(facts.gap_s()) < 2 * facts.measured_deviation_s; },
     [](const GapFacts&) {
       return std::string("no more than the steps differ among themselves: more steps tell");
     }},
    {[](const GapFacts& facts) {
       return std::abs(facts.gap_s()) < 2 * facts.predicted_deviation_s;
     },
     [](const GapFacts& facts) {
       return printed(
           "within what the constants leave open, most of all %s: tessera learn or "
           "calibrate narrows it",
           facts.constant.c_str());
     }},
    {[](const GapFacts& facts) {
       return facts.phase == Phase::reshard && facts.handover_s > 0.3 * facts.predicted_s;
     },
     [](const GapFacts& facts) {
       return printed(
           "the engine's software hands weights over (%.3f s of the prediction), not the "
           "links: tessera learn fits it (handover)",
           facts.handover_s);
     }},
    {[](const GapFacts& facts) {
       return facts.kind == CallKind::train && facts.gap_s() > 0 && facts.reserved_part > 0.95;
     },
     [](const GapFacts& facts) {
       return printed(
           "the allocator had reserved %.0f%% of the device: it gives blocks back and asks "
           "again",
           facts.reserved_part * 100);
     }},
    {[](const GapFacts& facts) { return facts.gap_s() > 0 && facts.on_processors; },
     [](const GapFacts&) {
       return std::string(
           "ranks share the processors with one another and with whatever else runs there");
     }},
    {[](const GapFacts& facts) {
       return facts.gap_s() > 0 && facts.communication_s > 0.3 * facts.predicted_s;
     },
     [](const GapFacts& facts) {
       return printed(
           "communication is %.0f%% of the prediction: links slower than the calibration "
           "says, or ranks that wait for one another",
           facts.communication_s / facts.predicted_s * 100);
     }},
    {[](const GapFacts& facts) { return std::abs(facts.constant_s) < kNoSeconds; },
     [](const GapFacts& facts) {
       return printed("kernels or host are %s than the constants say, none of which moves it",
                      facts.gap_s() > 0 ? "slower" : "faster");
     }},
    {[](const GapFacts&) { return true; },
     [](const GapFacts& facts) {
       return printed(
           "kernels or host are %s than the constants say; it depends most on %s (%.3g s a "
           "per cent): tessera learn fits it",
           facts.gap_s() > 0 ? "slower" : "faster", facts.constant.c_str(),
           std::abs(facts.constant_s));
     }},
}};

}  // namespace

std::string cause_of(const GapFacts& facts) {
  for (const GapRule& rule : kRules) {
    if (rule.holds(facts)) return rule.cause(facts);
  }
  return {};
}

}  // namespace tessera
