// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/sentences.h"

#include <QCoreApplication>
#include <array>

namespace tessera::gui {
namespace {

constexpr std::array kSentences{
    // A plan's report (planner/explain/report.cc, memory_fit.cc).
    QT_TRANSLATE_NOOP(
        "Words", "plan for %1 on %2: %3 of %4 GPUs, engine %5, placement colocated, one step off"),
    QT_TRANSLATE_NOOP("Words",
                      "plan for %1 on %2: %3 of %4 GPUs, engine %5, placement %6, one step off"),
    QT_TRANSLATE_NOOP("Words", "plan for %1 on %2: %3 of %4 GPUs, engine %5, placement colocated"),
    QT_TRANSLATE_NOOP("Words", "plan for %1 on %2: %3 of %4 GPUs, engine %5, placement %6"),
    QT_TRANSLATE_NOOP("Words", "model %1, %2: %3 parameters, %4 of them per token"),
    QT_TRANSLATE_NOOP("Words", "model %1, %2: %3 parameters"),
    QT_TRANSLATE_NOOP("Words", "%1 tokens per micro-batch, %2 where it does not train"),
    QT_TRANSLATE_NOOP("Words", "%1 tokens per micro-batch"),
    QT_TRANSLATE_NOOP("Words", "%1 sequences at once, log-probs computed again"),
    QT_TRANSLATE_NOOP("Words", "%1 sequences at once, log-probs not told"),
    QT_TRANSLATE_NOOP("Words", "%1 sequences at once, log-probs told"),
    QT_TRANSLATE_NOOP("Words", "%1 sequences at once"),
    QT_TRANSLATE_NOOP(
        "Words",
        "engine %1 does not run %2: priced under its rules, and for another engine to run"),
    QT_TRANSLATE_NOOP("Words", "fullest rank on %1 %2 of %3 (%4 %)"),
    QT_TRANSLATE_NOOP("Words", "fullest rank %1 of %2 (%3 %)"),
    QT_TRANSLATE_NOOP("Words", "fits with %1: the device holds %2 +- %3 of %4 then (%5)"),
    QT_TRANSLATE_NOOP("Words", "nobody has measured the memory of engine %1"),
    QT_TRANSLATE_NOOP("Words", "error bar of %1 measured configurations"),
    QT_TRANSLATE_NOOP("Words", "one step of safety, %1: no plan of this request fits so surely"),
    QT_TRANSLATE_NOOP("Words", "one step of safety, %1: this plan has it"),
    QT_TRANSLATE_NOOP("Words", "one step of safety, %1: costs %2 (%3), %4"),
    QT_TRANSLATE_NOOP(
        "Words",
        "less %1 where training weights are views of the rollout's: the search counts both"),
    QT_TRANSLATE_NOOP(
        "Words",
        "gen waits for the server's front end, which hands every token over: %1 of its %2"),
    QT_TRANSLATE_NOOP("Words", "responses of %1 tokens on average: %2 before they are cut at %3"),
    QT_TRANSLATE_NOOP("Words",
                      "step %1 +- %2 (one standard deviation, from the covariance of the "
                      "constants), %3 tokens/s/GPU, update at %4 % of peak, %5 of communication"),
    QT_TRANSLATE_NOOP("Words",
                      "step %1, %2 tokens/s/GPU, update at %3 % of peak, %4 of communication"),
    QT_TRANSLATE_NOOP("Words",
                      "adapters of rank %1 beside frozen weights: %2 million parameters trained"),
    QT_TRANSLATE_NOOP("Words",
                      "reshard %1 -> %2, %3: busiest rank receives %4 (lower bound %5; adapters "
                      "alone, once before %6 of the weights beside them)"),
    QT_TRANSLATE_NOOP(
        "Words", "reshard %1 -> %2, %3: busiest rank receives %4 (lower bound %5; adapters alone)"),
    QT_TRANSLATE_NOOP("Words",
                      "reshard %1 -> %2, %3: busiest rank receives %4 (lower bound %5; gathering "
                      "everything: %6x)"),
    QT_TRANSLATE_NOOP("Words", "reshard %1 -> %2, %3: busiest rank receives %4 (lower bound %5)"),
    QT_TRANSLATE_NOOP("Words", "%1 by %2 in buckets of %3"),
    QT_TRANSLATE_NOOP("Words", "%1 in buckets of %2"),
    QT_TRANSLATE_NOOP("Words", "%1 by copy_engine"), QT_TRANSLATE_NOOP("Words", "%1 by nccl"),
    QT_TRANSLATE_NOOP("Words", "certificate: none; the plan is %1"),
    QT_TRANSLATE_NOOP("Words",
                      "certificate: %1 = %2, proven best of the space (gap %3 %); %4 candidates "
                      "priced, %5 branches cut"),
    QT_TRANSLATE_NOOP("Words",
                      "certificate: %1 = %2, proven best of what is fixed (gap %3 %); %4 "
                      "candidates priced, %5 branches cut"),
    QT_TRANSLATE_NOOP("Words", "fixed: %1"),
    QT_TRANSLATE_NOOP("Words", "without that another plan may be better"),
    QT_TRANSLATE_NOOP("Words", "without that: %1, %2; this plan is %3 % behind"),
    QT_TRANSLATE_NOOP("Words", "left open: %1"),
    QT_TRANSLATE_NOOP("Words", "no other plan fits within the settings"),
    QT_TRANSLATE_NOOP("Words", "and %1 more in the plan file"),
    QT_TRANSLATE_NOOP("Words", "+%1 GPUs"), QT_TRANSLATE_NOOP("Words", "%1 GPUs, step %2"),
    QT_TRANSLATE_NOOP("Words", "%1 tokens/s/GPU"), QT_TRANSLATE_NOOP("Words", "%1 GPU s per step"),
    QT_TRANSLATE_NOOP("Words", "%1 per step"),
    QT_TRANSLATE_NOOP(
        "Words",
        "margin: no plan on as few GPUs; errors of the predicted times do not change that"),
    QT_TRANSLATE_NOOP("Words",
                      "margin: another plan wins if the predictions of the two plans err by %1 % "
                      "in opposite directions; a tie: the nearest is predicted to be as good"),
    QT_TRANSLATE_NOOP(
        "Words",
        "margin: another plan wins if the predictions of the two plans err by %1 % in opposite "
        "directions; a tie: the nearest is behind by %2 standard deviations of the difference"),
    QT_TRANSLATE_NOOP(
        "Words",
        "margin: another plan wins if the predictions of the two plans err by %1 % in opposite "
        "directions; the nearest is behind by more than %2 standard deviations of the difference"),
    QT_TRANSLATE_NOOP(
        "Words",
        "margin: another plan wins if the predictions of the two plans err by %1 % in opposite "
        "directions; the nearest is behind by %2 standard deviations of the difference"),
    QT_TRANSLATE_NOOP("Words",
                      "margin: another plan wins if the predictions of the two plans err by %1 % "
                      "in opposite directions"),
    QT_TRANSLATE_NOOP("Words", "constants: %1 measured, %2 shipped (calibration %3)"),
    QT_TRANSLATE_NOOP("Words", "no feasible plan"), QT_TRANSLATE_NOOP("Words", "nearest fix: %1"),
    // What a run's log taught (simulator/learn/learned_report.cc).
    QT_TRANSLATE_NOOP("Words", "worth using: the steps held out are %1% off with it, %2% before"),
    QT_TRANSLATE_NOOP("Words",
                      "not worth using: the steps held out are %1% off with it, %2% before"),
    QT_TRANSLATE_NOOP("Words", "nothing to use: no constant moved"),
    QT_TRANSLATE_NOOP("Words", "not known to be worth using: nothing is held out"),
    QT_TRANSLATE_NOOP(
        "Words",
        "noise, not worth using: steps of %1 differ by %2% among themselves, as ranks "
        "share the processors with one another and with whatever else runs there"),
    QT_TRANSLATE_NOOP("Words", "%1: %2 steps, %3 left out as warm-up"),
    QT_TRANSLATE_NOOP("Words", "steps that other plans of the folder ran, left out: %1"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: left out, as the log has the trainer's wait for it, not its time"),
    QT_TRANSLATE_NOOP("Words", "prompts: mean %1 tokens, planned %2"),
    QT_TRANSLATE_NOOP("Words", "lengths: not measured, the plan's"),
    QT_TRANSLATE_NOOP("Words",
                      "responses: mean %1 tokens of at most %2, planned %3; as a workload: %4"),
    QT_TRANSLATE_NOOP(
        "Words", "before and after: at these lengths; the plan's own prediction is at its own"),
    QT_TRANSLATE_NOOP("Words", "constant that moved"),
    QT_TRANSLATE_NOOP(
        "Words",
        "further than constants of its kind go: likely a cost that the model does not have"),
    QT_TRANSLATE_NOOP("Words",
                      "above the %1 that the device is stated to reach, within its error bar"),
    QT_TRANSLATE_NOOP("Words",
                      "above the %1 that the device is stated to reach: likely the run did less "
                      "work than its plan has"),
    QT_TRANSLATE_NOOP("Words", "no constant moved: the runs time no phase of their plans"),
    QT_TRANSLATE_NOOP("Words", "no constant moved: the phases agree with the calibration as it is"),
    QT_TRANSLATE_NOOP("Words", "no constant moved: none explains how far the phases are off"),
    QT_TRANSLATE_NOOP("Words", "left, as the phases agree with them:"),
    QT_TRANSLATE_NOOP("Words", "left, as the phases do not tell them apart:"),
    QT_TRANSLATE_NOOP("Words", "left, as the phases say too little of them:"),
    QT_TRANSLATE_NOOP("Words", "left, as no phase depends on them:"),
    QT_TRANSLATE_NOOP("Words", "fragmentation is left: no run says what its allocator reserved"),
    QT_TRANSLATE_NOOP("Words",
                      "fragmentation: %1% of the device before, %2% +- %3% of it after (%4 run)"),
    QT_TRANSLATE_NOOP("Words",
                      "fragmentation: %1% of the device before, %2% +- %3% of it after (%4 runs)"),
    QT_TRANSLATE_NOOP("Words", "phases are off by %1 of their deviations before, %2 after"),
    QT_TRANSLATE_NOOP("Words", "nothing is held out: one run of one step"),
    QT_TRANSLATE_NOOP("Words", "held out, learned from the rest"),
    QT_TRANSLATE_NOOP("Words", "mean error of the steps held out: %1% before, %2% after"),
    // What a run is advised (planner/advice/run_advice_report.cc).
    QT_TRANSLATE_NOOP("Words", "step %1 measured, %2 by the learned constants"),
    QT_TRANSLATE_NOOP("Words", "no other setting is quicker and fits"),
    QT_TRANSLATE_NOOP("Words", "%1. %2, %3 times as quick: -%4 +- %5, fits with %6%"),
    QT_TRANSLATE_NOOP("Words", "prefill batches of %1 -> %2 tokens"),
    QT_TRANSLATE_NOOP("Words", "%1, prefill batches of %2 -> %3 tokens"),
    // Experts (cost_models/spec/expert_parallel.cc, planner/engines).
    QT_TRANSLATE_NOOP("Words", "ep %1, etp %2 with tp %3 of a model without experts"),
    QT_TRANSLATE_NOOP("Words", "ep %1 of a model without experts"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1, etp %2 with tp %3 for %4 experts over %5 ranks (tp x cp x shards); "
                      "etp is 1 and ep divides both"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1 for %2 experts over %3 ranks that share weights; ep divides both"),
    QT_TRANSLATE_NOOP("Words", "ep %1, etp %2 with tp %3 for %4 experts; ep may be as many"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1, etp %2 with tp %3 beside zero %4; experts that lie apart from the "
                      "rest are not cut into shards: ep x etp may be %5, or zero 0"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1, etp %2 with tp %3; experts are cut as the rest is (etp = tp), or "
                      "with sequence parallelism into fewer parts"),
    QT_TRANSLATE_NOOP("Words", "ep %1, etp %2 with tp %3; etp divides tp"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1, etp %2 with tp %3; ep x etp is a multiple or a divisor of tp"),
    QT_TRANSLATE_NOOP("Words",
                      "ep %1, etp %2 with tp %3; without ep experts are cut as the rest is"),
    QT_TRANSLATE_NOOP("Words", "hidden/layers/vocab %1; torchtitan has of this family %2"),
    QT_TRANSLATE_NOOP("Words", "%1, which cannot run on packed sequences: %2"),
    QT_TRANSLATE_NOOP("Words", "no matrix of a layer is called %1, but %2"),
    // What an engine has instead of a setting (planner/space/engine_limits.cc) and other reasons.
    QT_TRANSLATE_NOOP(
        "Words",
        "engine '%1' has one set of process groups (Megatron's mpu) for all roles on the same GPUs "
        "that train or score, so they share tp, pp, vpp, cp, ep and etp"),
    QT_TRANSLATE_NOOP("Words", "no such degree (%1)"),
    QT_TRANSLATE_NOOP("Words", "at least a longest sequence, %1,"),
    QT_TRANSLATE_NOOP("Words", "0 or 3 with adapters, which every replica has whole,"),
    QT_TRANSLATE_NOOP("Words", "none with adapters, whose weights move once,"),
    QT_TRANSLATE_NOOP("Words", "1 (not %1)"), QT_TRANSLATE_NOOP("Words", "etp = tp (not %1)"),
    QT_TRANSLATE_NOOP("Words", "none or optimizer"),
    QT_TRANSLATE_NOOP("Words",
                      "ulysses deals the %1 key heads of linear attention out evenly, and tp x cp "
                      "= %2 does not divide them"),
    QT_TRANSLATE_NOOP(
        "Words",
        "ulysses deals the %1 query heads out evenly, and tp x cp = %2 does not divide them"),
    QT_TRANSLATE_NOOP("Words",
                      "vLLM divides its %1 %2 evenly, which %3 tensor-parallel workers cannot"),
    QT_TRANSLATE_NOOP("Words",
                      "vLLM gives each worker whole KV heads, or one head to equally many: %1 "
                      "heads and %2 workers divide neither way"),
    // Rules that were judged (simulator/rules/rules.cc).
    QT_TRANSLATE_NOOP("Words", "none: %1"), QT_TRANSLATE_NOOP("Words", "rules: %1"),
    QT_TRANSLATE_NOOP("Words", "%1 (%2, models from %3B)"),
    QT_TRANSLATE_NOOP("Words", "%1 (%2, models of %3B to %4B)"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2; predicted %3, bound %4; would fail"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2; predicted %3, bound %4"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2; predicted %3; would fail"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2; predicted %3"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2; would fail"),
    QT_TRANSLATE_NOOP("Words", "value %1, limit %2"),
    QT_TRANSLATE_NOOP("Words", "confirmed: %1 [%2]"),
    QT_TRANSLATE_NOOP("Words", "conflicting: %1 [%2]"),
    QT_TRANSLATE_NOOP("Words", "refuted: %1 [%2]"), QT_TRANSLATE_NOOP("Words", "warn: %1"),
    QT_TRANSLATE_NOOP("Words", "pause: %1"), QT_TRANSLATE_NOOP("Words", "stop: %1"),
    QT_TRANSLATE_NOOP("Words", "set lr: %1"), QT_TRANSLATE_NOOP("Words", "roll back: %1"),
    QT_TRANSLATE_NOOP("Words", "%1 rules: %2")};

}  // namespace

std::span<const char* const> reportSentences() { return kSentences; }

}  // namespace tessera::gui
