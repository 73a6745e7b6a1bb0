// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/explore/shown_answer.h"

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

// "7.1 % behind the plan without actor.tp=8: communication +7.30 s". Seconds are no cause of what
// costs more, or needs more GPUs.
QString with_cause(const QString& behind, const Session::Compared& pair) {
  const Priced shown = priced(*pair.shown.plan);
  const bool slower =
      compares_steps(*pair.other.plan, shown) && worse_by(*pair.other.plan, shown) >= kNoPart;
  if (!slower) return behind;
  const QString cause = largest_cause(pair.other, pair.shown);
  return cause.isEmpty() ? behind : Words::tr("%1: %2").arg(behind, cause);
}

}  // namespace

QString ShownAnswer::details() const { return apart.isEmpty() ? proof : apart + "\n" + proof; }

ShownAnswer shown_answer(Session& session) {
  const Document& document = session.document();
  const PlanTableModel& rows = *session.plans();
  const bool first = rows.rowCount() == 0 || session.shownRow() == 0;
  const Plan* best = first ? nullptr : rows.row(0).plan.get();
  ShownAnswer answer;
  answer.line = headline_of(*document.plan, session.calibration(), session.fixed(), best);
  const std::string& uncertified = document.uncertified;
  if (first && !uncertified.empty()) answer.line.rivals = not_compared_text(uncertified);
  const bool read = document.seconds <= 0;  // from a file
  if (read && first && uncertified.empty() && document.plan->certificate.runner_up.empty() &&
      !document.plan->certificate.better.used()) {
    answer.line.rivals = Words::tr("its file has no other plan");
  }
  answer.proof = uncertified.empty() ? proof_text(*document.plan, document.seconds, session.fixed(),
                                                  fixed_everywhere(document))
                                     : unproven_text(uncertified);
  const auto pair = session.compared();
  if (!pair) return answer;
  answer.apart = apart_text(pair->other, pair->shown);
  if (first) {
    const FreerAnswer& freer = document.freer.back();
    answer.line.freer = with_cause(behind_text(*document.plan, document.question, freer), *pair);
  } else {
    answer.line.rivals = with_cause(answer.line.rivals, *pair);
  }
  return answer;
}

}  // namespace tessera::gui
