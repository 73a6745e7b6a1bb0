// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/why_not_answer.h"

#include <QStringList>
#include <variant>
#include <vector>

#include "gui/document/headline.h"
#include "gui/document/plan_answer.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/plans/plan_apart.h"
#include "gui/plans/plan_parts.h"
#include "gui/translations/said.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"

namespace tessera::gui {
namespace {

std::string key_of(const std::string& word) { return word.substr(0, word.find('=')); }

QString cost_text(const Plan& plan, const Priced& other, const QString& setting) {
  const double worse = worse_by(plan, other);
  if (worse < kNoPart) {
    return Words::tr("The best plan with %1 is as good as this one or better.").arg(setting);
  }
  if (compares_steps(plan, other)) {
    return Words::tr("The best plan with %1 is %2 behind this one.")
        .arg(setting, differenceText(worse));
  }
  return Words::tr("The best plan with %1 %2.")
      .arg(setting, worse_than(plan, other, Words::tr("this plan")));
}

QString with_it(const SharedPlan& plan, const SharedPlan& other, const std::string& word) {
  const PartsByPlan parts = parts_of({plan, other});
  const auto named = [&](const QString& name, const SharedPlan& one) {
    const auto found = parts.find(one);
    return NamedPlan{name, one, found == parts.end() ? nullptr : &found->second};
  };
  const QString setting = QString::fromStdString(word);
  if (plan->roles == other->roles) return Words::tr("This plan has %1.").arg(setting);
  QStringList lines{cost_text(*plan, priced(*other), setting)};
  lines << apart_text(named(Words::tr("this plan"), plan),
                      named(Words::tr("the plan with %1").arg(setting), other));
  lines << Words::tr("Its layouts: %1.").arg(toText(describe_layouts(*other)));
  return lines.join("\n");
}

}  // namespace

PlanQuery with_choice(PlanQuery question, const std::string& word) {
  std::erase_if(question.fixed,
                [&](const std::string& one) { return key_of(one) == key_of(word); });
  question.fixed.push_back(word);
  return question;
}

WhyNotAnswer why_not_answer(const SharedPlan& plan, const PlanQuery& question,
                            const std::string& word) {
  const PlanQuery asked = with_choice(question, word);
  const PlanAnswer found = answer(asked);
  if (const auto* problems = std::get_if<Problems>(&found.result)) {
    return {problemsText(*problems), std::nullopt};
  }
  if (const auto* none = std::get_if<Infeasible>(&found.result)) {
    // Their first line says nothing more, nor the second where the headline has the reason.
    const QStringList more = saidLines(describe(*none)).split('\n', Qt::SkipEmptyParts);
    const QStringList lines =
        QStringList{headline_of(*none)} + more.mid(none->shortages.empty() ? 2 : 1);
    return {lines.join('\n'), std::nullopt};
  }
  return {with_it(plan, std::get<SharedPlan>(found.result), word), asked};
}

}  // namespace tessera::gui
