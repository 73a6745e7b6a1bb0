// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/said.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <array>
#include <vector>

namespace tessera::gui {
namespace {

// Sentences with values, the longer one first where another is its beginning.
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
    QT_TRANSLATE_NOOP("Words",
                      "%1 is beyond engine '%2', which has %3 there; plan with --engine %4"),
    QT_TRANSLATE_NOOP("Words", "%1 is beyond engine '%2', which has %3 there"),
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
    QT_TRANSLATE_NOOP("Words",
                      "communication is %1% of the prediction: links slower than the calibration "
                      "says, or ranks that wait for one another"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are slower than the constants say; it depends most on %1 "
                      "(%2 s a per cent): tessera learn fits it"),
    QT_TRANSLATE_NOOP("Words",
                      "kernels or host are faster than the constants say; it depends most on %1 "
                      "(%2 s a per cent): tessera learn fits it"),
    // Whether a reshard moved what was foreseen (simulator/timeline/comparison.cc).
    QT_TRANSLATE_NOOP("Words", "reshard %1 -> %2"),
    QT_TRANSLATE_NOOP("Words", "NOT EQUAL in 1 step"),
    QT_TRANSLATE_NOOP("Words", "NOT EQUAL in %1 steps"),
    QT_TRANSLATE_NOOP("Words", "MORE in 1 step"), QT_TRANSLATE_NOOP("Words", "MORE in %1 steps"),
    // Links (simulator/network/cluster_network.cc).
    QT_TRANSLATE_NOOP("Words", "GPU %1, out"), QT_TRANSLATE_NOOP("Words", "GPU %1, in"),
    QT_TRANSLATE_NOOP("Words", "node %1, card %2, out"),
    QT_TRANSLATE_NOOP("Words", "node %1, card %2, in"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, rail %2, out"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, rail %2, in"), QT_TRANSLATE_NOOP("Words", "leaf %1, out"),
    QT_TRANSLATE_NOOP("Words", "leaf %1, in")};

QString translated(const char* text) { return QCoreApplication::translate("Words", text); }

bool isPlace(const QString& text, qsizetype at) {
  return text[at] == '%' && at + 1 < text.size() && text[at + 1].isDigit();
}

/// Matches what the sentence makes of values; they are its groups, by their numbers.
QRegularExpression matcherOf(const QString& sentence) {
  QString pattern;
  for (qsizetype at = 0; at < sentence.size(); ++at) {
    if (isPlace(sentence, at)) {
      pattern += "(.+?)";
      ++at;
    } else {
      pattern += QRegularExpression::escape(sentence.mid(at, 1));
    }
  }
  return QRegularExpression(QRegularExpression::anchoredPattern(pattern));
}

const std::vector<QRegularExpression>& matchers() {
  static const std::vector<QRegularExpression> all = [] {
    std::vector<QRegularExpression> made;
    for (const char* sentence : kSentences) made.push_back(matcherOf(sentence));
    return made;
  }();
  return all;
}

/// At once: a value may look like a place of another.
QString filled(const QString& sentence, const QRegularExpressionMatch& values) {
  QString text;
  for (qsizetype at = 0; at < sentence.size(); ++at) {
    if (isPlace(sentence, at)) {
      text += values.captured(sentence[++at].digitValue());
    } else {
      text += sentence[at];
    }
  }
  return text;
}

}  // namespace

QString said(std::string_view english) {
  const QString text = QString::fromUtf8(english.data(), static_cast<qsizetype>(english.size()));
  if (text.isEmpty()) return text;
  const QString whole = translated(text.toUtf8().constData());
  if (whole != text) return whole;
  for (std::size_t i = 0; i < kSentences.size(); ++i) {
    const QString sentence = translated(kSentences[i]);
    if (sentence == kSentences[i]) return text;  // the language is English
    if (const auto values = matchers()[i].match(text); values.hasMatch()) {
      return filled(sentence, values);
    }
  }
  return text;
}

}  // namespace tessera::gui
