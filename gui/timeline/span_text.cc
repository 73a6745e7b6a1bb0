// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/span_text.h"

#include "cost_models/documents/printed.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

QString timeText(std::int64_t ns) { return secondsText(static_cast<double>(ns) * 1e-9); }

}  // namespace

QString ranksText(const RankGroup& group) {
  return (group.ranks.size() == 1 ? Words::tr("rank %1") : Words::tr("ranks %1"))
      .arg(QString::fromStdString(ranges_text(group.ranks)));
}

QString describe(const TimelineIndex& index, std::size_t span, const RankGroup* group) {
  const Span& of = index.span(span);
  QString text = Words::tr("<b>%1</b>, %2 of rank %3<br>%4 to %5: <b>%6</b>, in %7")
                     .arg(QString::fromStdString(of.name).toHtmlEscaped(), said(name_of(of.stream)))
                     .arg(of.rank)
                     .arg(timeText(of.start_ns), timeText(of.end_ns),
                          timeText(of.end_ns - of.start_ns), toText(name_of(of.phase)));
  if (group != nullptr) text += Words::tr("<br>the same on %1").arg(ranksText(*group));
  if (of.bytes > 0) text += Words::tr("<br>moves %1").arg(bytesText(of.bytes));
  if (of.stream == Stream::phases) return text;
  if (index.on_critical_path(span)) {
    return text + Words::tr("<br>on the critical path: the step grows with it");
  }
  return text + Words::tr("<br>slack %1: so much later it could end").arg(timeText(of.slack_ns));
}

}  // namespace tessera::gui
