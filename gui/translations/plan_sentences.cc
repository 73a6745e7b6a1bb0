// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/sentences.h"

#include <QCoreApplication>
#include <array>

namespace tessera::gui {
namespace {

constexpr std::array kSentences{
    // Placements (planner/request/describe.cc, planner/search/certificate.cc).
    QT_TRANSLATE_NOOP("Words", "colocated on %1, another layout"),
    QT_TRANSLATE_NOOP("Words", "colocated, another layout"),
    QT_TRANSLATE_NOOP("Words", "%1, another layout"),
    QT_TRANSLATE_NOOP("Words", "colocated on %1, other GPU types"),
    QT_TRANSLATE_NOOP("Words", "%1, other GPU types"),
    QT_TRANSLATE_NOOP("Words", "colocated on %1"),
    // How surely a plan fits (planner/explain/memory_fit.cc).
    QT_TRANSLATE_NOOP("Words", "more than %1 %"),
    // What would make something fit (planner/explain/nearest_fix.cc).
    QT_TRANSLATE_NOOP("Words", "use %1 nodes (%2 GPUs)"),
    QT_TRANSLATE_NOOP("Words", "use GPUs with %1 of memory"),
    QT_TRANSLATE_NOOP("Words", "leave out %1, but nothing fits then either"),
    QT_TRANSLATE_NOOP("Words", "leave out %1"),
    QT_TRANSLATE_NOOP("Words", "%1=%2 instead of %3=%4"),
    // Why nothing fits (planner/explain/infeasible.cc, planner/space/degree_limits.cc,
    // planner/space/engine_limits.cc).
    QT_TRANSLATE_NOOP("Words",
                      "rank %1 of a pool on %2 in phase %3 (%4): needs %5 of %6, %7 too much; "
                      "largest part %8, %9"),
    QT_TRANSLATE_NOOP("Words",
                      "rank %1 in phase %2 (%3): needs %4 of %5, %6 too much; largest part %7, "
                      "%8"),
    QT_TRANSLATE_NOOP("Words",
                      "no layout of the %1 on up to %2 GPUs satisfies the fixed settings, the "
                      "model's heads and layers and a dp that divides its batch"),
    QT_TRANSLATE_NOOP("Words",
                      "every role fits alone, but no placement and split of %1 GPUs that the "
                      "settings allow holds them all; %2"),
    QT_TRANSLATE_NOOP("Words",
                      "every role fits alone, but no placement and split of %1 GPUs that the "
                      "settings allow holds them all"),
    QT_TRANSLATE_NOOP("Words",
                      "%1 and %2: placement '%3' has both roles in one pool, whose GPUs are all of "
                      "the types that one name says"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: the planner's blocks of GPUs divide a node of %2 (%3) or are whole "
                      "nodes of the %4"),
    QT_TRANSLATE_NOOP("Words",
                      "%1 does not divide a node of %2 GPUs, which tensor parallelism stays in"),
    QT_TRANSLATE_NOOP("Words", "%1 needs more than the %2 GPUs that the cluster has"),
    QT_TRANSLATE_NOOP("Words", "%1 needs more than the %2 GPUs that %3 leaves it"),
    QT_TRANSLATE_NOOP("Words", "%1: %2 GPUs are no multiple of %3"),
    QT_TRANSLATE_NOOP("Words", "%1: the model has only %2 attention heads"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: the engine cuts the model's %2 attention heads (%3 of keys and values) "
                      "and its MLP of %4 columns into equal parts, and they have no %5"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: the model has only %2 layers, and a pipeline stage needs one at least"),
    QT_TRANSLATE_NOOP("Words", "%1: plans have at most %2 virtual stages on a rank"),
    QT_TRANSLATE_NOOP("Words", "%1: a pipeline of one stage has no virtual ones"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: the engine runs virtual stages on a multiple of pp micro-batches, which "
                      "the %2 sequences of a replica do not fill"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: virtual stages have equally many layers, and the model's %2 are no "
                      "multiple of %3"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: a step has only %2 prompts, and each replica needs one at least"),
    QT_TRANSLATE_NOOP("Words",
                      "%1: a step has only %2 sequences, and each replica needs one at least"),
    QT_TRANSLATE_NOOP("Words", "%1 does not divide the %2 sequences of a mini-batch"),
    QT_TRANSLATE_NOOP("Words", "%1 does not divide the %2 sequences of a step"),
    QT_TRANSLATE_NOOP("Words", "%1 is beyond engine '%2', which has %3 there; plan for engine %4"),
    QT_TRANSLATE_NOOP("Words", "%1 is beyond engine '%2', which has %3 there")};

}  // namespace

std::span<const char* const> planSentences() { return kSentences; }

}  // namespace tessera::gui
