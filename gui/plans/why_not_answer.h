// SPDX-License-Identifier: GPL-3.0-or-later
// Why the plan that is shown has not another choice: what the best plan with it costs and why, or
// what makes it impossible.
//
// Pure; any thread. A search that takes as long as planning does.
#pragma once

#include <QString>
#include <optional>
#include <string>

#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"

namespace tessera::gui {

struct WhyNotAnswer {
  QString text;                     // sentences, a line each
  std::optional<PlanQuery> choice;  // the question with it; nullopt where no plan has it
};

/// The question with the word, "actor.tp=8", instead of what it fixed of that setting.
PlanQuery with_choice(PlanQuery question, const std::string& word);

/// `plan` answers `question`, or is another row of its table. Never throws.
WhyNotAnswer why_not_answer(const SharedPlan& plan, const PlanQuery& question,
                            const std::string& word);

}  // namespace tessera::gui
