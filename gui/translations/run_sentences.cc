// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/sentences.h"

#include <QCoreApplication>
#include <array>

namespace tessera::gui {
namespace {

constexpr std::array kSentences{
    // In how many steps a phase was (simulator/timeline/comparison.cc).
    QT_TRANSLATE_NOOP("Words", "in %1 of %2 steps"),
    // What a phase took longer or less for (simulator/learn/gap_causes.cc).
    QT_TRANSLATE_NOOP("Words", "phases that the run does not time lie in it: %1 (%2 s predicted)"),
    QT_TRANSLATE_NOOP("Words",
                      "responses of %1 tokens where the plan has %2, prompts of %3 tokens where "
                      "the plan has %4: with those %5 s are predicted"),
    QT_TRANSLATE_NOOP("Words",
                      "responses of %1 tokens where the plan has %2: with those %3 s are "
                      "predicted"),
    QT_TRANSLATE_NOOP("Words",
                      "prompts of %1 tokens where the plan has %2: with those %3 s are predicted"),
    QT_TRANSLATE_NOOP("Words",
                      "responses of another spread than the plan's: with those %1 s are "
                      "predicted"),
    QT_TRANSLATE_NOOP("Words",
                      "within what the constants leave open, most of all %1: tessera learn or "
                      "calibrate narrows it"),
    QT_TRANSLATE_NOOP("Words",
                      "the engine's software hands weights over (%1 s of the prediction), not the "
                      "links: tessera learn fits it (handover)"),
    QT_TRANSLATE_NOOP("Words",
                      "the allocator had reserved %1% of the device: it gives blocks back and asks "
                      "again"),
    QT_TRANSLATE_NOOP(
        "Words", "ranks share the processors with one another and with whatever else runs there"),
    QT_TRANSLATE_NOOP("Words",
                      "communication is %1% of the prediction: links slower than the calibration "
                      "says, or ranks that wait for one another"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are slower than the constants say; it depends most on %1 "
                      "(%2 s a per cent): tessera learn fits it"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are faster than the constants say; it depends most on %1 "
                      "(%2 s a per cent): tessera learn fits it"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are slower than the constants say, none of which moves it"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are faster than the constants say, none of which moves it"),
    // Why rules do not judge by predicted times (simulator/rules/plan_metrics.cc).
    QT_TRANSLATE_NOOP("Words", "the plan is for %1, and its ranks run on processors"),
    QT_TRANSLATE_NOOP("Words",
                      "no constant was measured on this machine: tessera calibrate measures it"),
    // Whether a reshard moved what was foreseen (simulator/timeline/comparison.cc).
    QT_TRANSLATE_NOOP("Words", "reshard %1 -> %2"),
    QT_TRANSLATE_NOOP("Words", "NOT EQUAL in 1 step"),
    QT_TRANSLATE_NOOP("Words", "NOT EQUAL in %1 steps"),
    QT_TRANSLATE_NOOP("Words", "MORE in 1 step"), QT_TRANSLATE_NOOP("Words", "MORE in %1 steps"),
    // Why a rank's file cannot be read (simulator/timeline/rank_status.cc).
    QT_TRANSLATE_NOOP("Words", "%1 bytes instead of %2"),
    QT_TRANSLATE_NOOP("Words", "the file of rank %1"),
    QT_TRANSLATE_NOOP("Words", "not what a rank of this version writes"),
    // Links (simulator/network/cluster_network.cc).
    QT_TRANSLATE_NOOP("Words", "GPU %1, out"), QT_TRANSLATE_NOOP("Words", "GPU %1, in"),
    QT_TRANSLATE_NOOP("Words", "node %1, card %2, out"),
    QT_TRANSLATE_NOOP("Words", "node %1, card %2, in"),
    QT_TRANSLATE_NOOP("Words", "node %1, switch %2, out"),
    QT_TRANSLATE_NOOP("Words", "node %1, switch %2, in"),
    QT_TRANSLATE_NOOP("Words", "node %1, socket %2, out"),
    QT_TRANSLATE_NOOP("Words", "node %1, socket %2, in"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, rail %2, out"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, rail %2, in"), QT_TRANSLATE_NOOP("Words", "leaf %1, out"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, in")};

}  // namespace

std::span<const char* const> runSentences() { return kSentences; }

}  // namespace tessera::gui
