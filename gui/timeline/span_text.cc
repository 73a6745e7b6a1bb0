// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/span_text.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "cost_models/documents/printed.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/plans/plan_apart.h"
#include "gui/timeline/step_apart.h"
#include "gui/translations/said.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

QString timeText(std::int64_t ns) { return secondsText(static_cast<double>(ns) * 1e-9); }

constexpr std::size_t kMostAwaited = 5, kMostMeanwhile = 4;
constexpr qsizetype kMostApart = 5;   // parts that are told
constexpr double kLeastApart = 0.01;  // of the largest

// "B0 of stage 2", "decode 8 sequences, 512 steps".
QString taskText(const TimelineIndex& index, std::size_t span, const std::vector<int>& ranks) {
  const Span of = index.span(span);
  const QString name = QString::fromStdString(of.name).toHtmlEscaped();
  const std::vector<int>& stages = index.layouts[of.phase].stage_of_rank;
  if (stages.empty()) return name;
  const int stage = stages[static_cast<std::size_t>(ranks.front())];
  const bool one = std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return stages[static_cast<std::size_t>(rank)] == stage;
  });
  return one && stage >= 0 ? Words::tr("%1 of stage %2").arg(name).arg(stage) : name;
}

QString periodText(const Span& span) {
  return Words::tr("%1 to %2").arg(timeText(span.start_ns), timeText(span.end_ns));
}

// "send F0 of stage 1 (communication of ranks 8-15, 1.2 s to 1.3 s)".
QString awaitedText(const TimelineIndex& index, std::size_t span, const LaneGap& gap) {
  const Span of = index.span(span);
  const std::vector<int> ranks = ranks_of_task(index, span);
  const bool own = std::binary_search(ranks.begin(), ranks.end(), gap.lane.rank);
  const QString who = own ? Words::tr("its own %1").arg(said(name_of(of.stream)))
                          : Words::tr("%1 of %2").arg(said(name_of(of.stream)), ranksText({ranks}));
  return Words::tr("<b>%1</b> (%2, %3)").arg(taskText(index, span, ranks), who, periodText(of));
}

QString waitsText(const TimelineIndex& index, const LaneGap& gap) {
  if (gap.next == gap.lane.last) {
    return Words::tr("<br>nothing follows here: others work to the end of the step");
  }
  const Span next = index.span(gap.next);
  QString text =
      Words::tr("<br>until %1 of %2 begins")
          .arg(QString::fromStdString(next.name).toHtmlEscaped(), toText(name_of(next.phase)));
  const std::vector<std::size_t> chain = awaited_in(index, gap);
  for (std::size_t i = 0; i < std::min(chain.size(), kMostAwaited); ++i) {
    const QString what = awaitedText(index, chain[i], gap);
    text += i == 0 ? Words::tr("<br>waits for %1").arg(what)
                   : Words::tr("<br>which waited for %1").arg(what);
  }
  if (chain.size() > kMostAwaited) {
    text += Words::tr("<br>and so on, %1 more").arg(chain.size() - kMostAwaited);
  }
  return text;
}

QString meanwhileText(const TimelineIndex& index, const LaneGap& gap) {
  const std::vector<std::size_t> spans = meanwhile(index, gap);
  QStringList names;
  for (std::size_t i = 0; i < std::min(spans.size(), kMostMeanwhile); ++i) {
    names << QString::fromStdString(index.span(spans[i]).name).toHtmlEscaped();
  }
  if (spans.size() > kMostMeanwhile) {
    names << Words::tr("... (%1 in all)").arg(spans.size());
  }
  return names.isEmpty() ? Words::tr("<br>the rank's other streams are idle, too")
                         : Words::tr("<br>its other streams meanwhile: %1").arg(names.join(", "));
}

QString communicationText(const TimelineIndex& index, std::size_t span) {
  const std::int64_t ns = communication_ns(index, span);
  if (ns <= 0) return {};
  const Span of = index.span(span);
  const double share = static_cast<double>(ns) / static_cast<double>(of.end_ns - of.start_ns);
  const std::string& within = index.layouts[of.phase].within;
  const QString text = Words::tr("<br>of it %1 (%2 %) communicates within its layers")
                           .arg(timeText(ns))
                           .arg(100 * share, 0, 'f', 1);
  return within.empty() ? text : text + QString(" (%1)").arg(QString::fromStdString(within));
}

// "python, thread 17": a process and a thread of an opened trace.
QString placeText(const TimelineIndex& index, const Lane& lane) {
  const TraceNames& names = *index.trace;
  return QString("%1, %2").arg(
      toText(names.processes[static_cast<std::size_t>(lane.rank)]).toHtmlEscaped(),
      toText(names.tracks[static_cast<std::size_t>(lane.track)]).toHtmlEscaped());
}

QString tracedText(const TimelineIndex& index, std::size_t span) {
  const Span of = index.span(span);
  const QString text =
      Words::tr("<b>%1</b><br>%2<br>%3 to %4: <b>%5</b>")
          .arg(toText(of.name).toHtmlEscaped(), placeText(index, lane_of(index, span)),
               timeText(of.start_ns), timeText(of.end_ns), timeText(of.end_ns - of.start_ns));
  const QString category = toText(index.names[index.trace->category_of[span]]);
  return category.isEmpty() ? text
                            : text + Words::tr("<br>category %1").arg(category.toHtmlEscaped());
}

}  // namespace

QString ranksText(const RankGroup& group) {
  return (group.ranks.size() == 1 ? Words::tr("rank %1") : Words::tr("ranks %1"))
      .arg(QString::fromStdString(ranges_text(group.ranks)));
}

QString groupText(const TimelineIndex& index, const RankGroup& group) {
  if (!index.trace) return ranksText(group);
  return toText(index.trace->processes[static_cast<std::size_t>(group.ranks.front())]);
}

QString laneText(const TimelineIndex& index, const Lane& lane) {
  if (index.trace) {
    const bool outermost = lane.depth == 0;
    return outermost ? toText(index.trace->tracks[static_cast<std::size_t>(lane.track)])
                     : QString();
  }
  return lane.stream == Stream::communication ? Words::tr("comm.") : said(name_of(lane.stream));
}

QString meaningText(const std::string& name) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string verb = name.substr(0, name.find_first_of(kDigits));
  if (verb == "F") return Words::tr("a micro-batch's forward pass; micro-batches count from 0");
  if (verb == "B") return Words::tr("a micro-batch's backward pass; micro-batches count from 0");
  if (name != "prepare") return {};
  return Words::tr(
      "the engine's software around the call, on the hosts' processors: handing out the batch's "
      "sequences, and in adv the advantages");
}

QString describe(const TimelineIndex& index, std::size_t span, const RankGroup* group) {
  const Span of = index.span(span);
  if (index.trace) return tracedText(index, span);
  QString text = Words::tr("<b>%1</b>, %2 of rank %3<br>%4 to %5: <b>%6</b>, in %7")
                     .arg(QString::fromStdString(of.name).toHtmlEscaped(), said(name_of(of.stream)))
                     .arg(of.rank)
                     .arg(timeText(of.start_ns), timeText(of.end_ns),
                          timeText(of.end_ns - of.start_ns), toText(name_of(of.phase)));
  const QString meaning = meaningText(of.name);
  if (!meaning.isEmpty()) text += "<br>" + meaning;
  if (group != nullptr) text += Words::tr("<br>the same on %1").arg(ranksText(*group));
  if (of.bytes > 0) text += Words::tr("<br>moves %1").arg(bytesText(of.bytes));
  text += communicationText(index, span);
  if (of.stream == Stream::phases) return text;
  if (index.on_critical_path(span)) {
    return text + Words::tr("<br>on the critical path: the step grows with it");
  }
  return text + Words::tr("<br>slack %1: so much later it could end").arg(timeText(of.slack_ns));
}

QString describe(const TimelineIndex& index, const LaneGap& gap, const RankGroup* group) {
  if (index.trace) {
    return Words::tr("<b>idle %1</b>, %2<br>%3 to %4")
        .arg(timeText(gap.to_ns - gap.from_ns), placeText(index, gap.lane), timeText(gap.from_ns),
             timeText(gap.to_ns));
  }
  QString text = Words::tr("<b>idle %1</b>, %2 of rank %3<br>%4 to %5")
                     .arg(timeText(gap.to_ns - gap.from_ns), said(name_of(gap.lane.stream)))
                     .arg(gap.lane.rank)
                     .arg(timeText(gap.from_ns), timeText(gap.to_ns));
  text += waitsText(index, gap);
  if (gap.lane.stream != Stream::phases) text += meanwhileText(index, gap);
  if (group != nullptr) text += Words::tr("<br>the same on %1").arg(ranksText(*group));
  return text;
}

QString besidePredictedText(const Simulation& simulation, const Plan& plan) {
  const std::vector<PhaseApart> apart = apart_by_phase(simulation, plan);
  QStringList parts;
  double others = 0;
  for (const PhaseApart& one : apart) {
    const bool told = parts.size() < kMostApart &&
                      std::abs(one.seconds) >= kLeastApart * std::abs(apart.front().seconds);
    if (!told) others += one.seconds;
    if (!told || one.seconds == 0) continue;
    const QString what =
        one.phase ? toText(name_of(*one.phase)) : Words::tr("overlaps and gaps between calls");
    parts << what + " " + moreText(one.seconds);
  }
  if (std::abs(others) >= kLeastApart * std::abs(apart.front().seconds) && others != 0) {
    parts << Words::tr("all others") + " " + moreText(others);
  }
  const double more = simulation.step_s - plan.prediction.step_s.value;
  const QString takes =
      Words::tr("The step takes %1 here and %2 by its plan")
          .arg(secondsText(simulation.step_s), secondsText(plan.prediction.step_s.value));
  const QString split =
      parts.isEmpty() ? QString() : Words::tr(", %1: %2").arg(moreText(more), parts.join(", "));
  return takes + split +
         Words::tr(
             ". This is one draw of the response lengths (seed 0), in which whoever sends at once "
             "shares the links; plans state means over draws.");
}

}  // namespace tessera::gui
