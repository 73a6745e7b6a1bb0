// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/span_text.h"

#include <QStringList>

#include "gui/document/text.h"

namespace tessera::gui {
namespace {

QString timeText(std::int64_t ns) { return secondsText(static_cast<double>(ns) * 1e-9); }

}  // namespace

QString ranksText(const RankGroup& group) {
  QStringList parts;
  const std::vector<int>& ranks = group.ranks;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    parts << (last == i ? QString::number(ranks[i])
                        : QString("%1-%2").arg(ranks[i]).arg(ranks[last]));
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + parts.join(", ");
}

QString describe(const TimelineIndex& index, std::size_t span, const RankGroup* group) {
  const Span& of = index.span(span);
  QString text =
      QString("<b>%1</b>, %2 of rank %3<br>%4 to %5: <b>%6</b>, in %7")
          .arg(QString::fromStdString(of.name).toHtmlEscaped(), toText(name_of(of.stream)))
          .arg(of.rank)
          .arg(timeText(of.start_ns), timeText(of.end_ns), timeText(of.end_ns - of.start_ns),
               toText(name_of(of.phase)));
  if (group != nullptr) text += "<br>the same on " + ranksText(*group);
  if (of.bytes > 0) text += "<br>moves " + bytesText(of.bytes);
  if (of.stream == Stream::phases) return text;
  if (index.on_critical_path(span)) {
    return text + "<br>on the critical path: the step grows with it";
  }
  return text + "<br>slack " + timeText(of.slack_ns) + ": so much later it could end";
}

}  // namespace tessera::gui
