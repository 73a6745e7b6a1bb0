// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/headline.h"

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/explain/memory_fit.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/step_parts.h"
#include "planner/space/left_open.h"

namespace tessera::gui {
namespace {

QString fits_text(const Plan& plan, const std::optional<Calibration>& calibration) {
  if (!calibration) return Words::tr("its constants are not here: whether it fits is not known");
  const PlanFit fit = fit_of(plan, *calibration);
  return Words::tr("fits with %1 (%2)")
      .arg(said(fit_text(plan, fit.probability)), partText(fit.peak, fit.usable));
}

// Times of the phases that the step waits for: those on the longest chain of calls. All of them
// where that chain is not the step, as of a plan that was measured.
std::map<Phase, Seconds> waited_for(const Plan& plan) {
  constexpr double kSame = 0.02;  // of the step: what is outside all phases
  const std::map<Phase, Seconds>& times = plan.prediction.phases_s;
  std::map<Phase, Seconds> chain;
  Seconds end;
  for (const Phase phase : longest_chain(plan)) {
    const auto time = times.find(phase);
    if (time == times.end()) continue;
    chain.insert(*time);
    end += time->second;
  }
  const bool whole = std::abs(end / plan.prediction.step_s - 1) <= kSame;
  return whole ? chain : times;
}

QString largest_text(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  const std::map<Phase, Seconds> phases = waited_for(plan);
  const auto largest =
      std::max_element(phases.begin(), phases.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == phases.end() || prediction.step_s <= 0) return {};
  return Words::tr("%1 % in %2")
      .arg(numberText(100 * (largest->second / prediction.step_s), 0),
           toText(name_of(largest->first)));
}

struct Gpus {
  int own, best;
};

// `steps`: their steps alone make the difference.
QString worse_words(Objective objective, bool steps, double worse, Gpus gpus, const QString& name) {
  if (!steps) {
    switch (objective) {
      case Objective::step_time:
        break;
      case Objective::tokens_per_gpu:
        return Words::tr("makes %1 fewer tokens/s/GPU than %2")
            .arg(differenceText(1 - 1 / (1 + worse)), name);
      case Objective::cost:
        return Words::tr("costs %1 more than %2").arg(differenceText(worse), name);
      case Objective::fewest_gpus:
        return Words::tr("needs %1 GPUs instead of the %2 of %3")
            .arg(gpus.own)
            .arg(gpus.best)
            .arg(name);
    }
  }
  return Words::tr("%1 behind %2").arg(differenceText(worse), name);
}

// Of a plan that lost to another one, whose search had less fixed.
QString behind_better_text(const Plan& plan, const QString& name) {
  const RunnerUp& better = plan.certificate.better;
  const double worse = behind(plan, better);
  const Priced best = priced(plan, better);
  return worse < kNoPart ? Words::tr("as good as %1").arg(name)
                         : worse_words(objective_of(plan), compares_steps(plan, best), worse,
                                       {gpus_of(plan), best.gpus}, name);
}

// Rows of the table count from 1, the plan's own.
QString rivals_text(const Plan& plan, const std::vector<std::string>& fixed) {
  const Certificate& found = plan.certificate;
  if (found.better.used()) {
    return Words::tr("best of what is fixed, %1")
        .arg(behind_better_text(plan, Words::tr("the best plan")));
  }
  if (found.runner_up.empty()) {
    return fixed.empty() ? Words::tr("no other plan was found")
                         : Words::tr("no other plan with what is fixed");
  }
  const Priced second = priced(plan, found.runner_up.front());
  const double behind = worse_by(plan, second);
  const bool tied = found.margin == 0 || behind < kNoPart ||
                    (found.margin_deviations > 0 && found.margin_deviations < 1);
  if (tied) return Words::tr("tied with row 2");
  return compares_steps(plan, second)
             ? Words::tr("row 2: +%1").arg(differenceText(behind))
             : Words::tr("row 2: %1").arg(worse_than(plan, second, Words::tr("row %1").arg(1)));
}

QString behind_first_text(const Plan& first, const Priced& other) {
  return worse_by(first, other) < kNoPart ? Words::tr("tied with row 1")
                                          : worse_than(first, other, Words::tr("row %1").arg(1));
}

// How wrong the predictions would have to be for another plan to win; empty: there is no other.
QString margin_text(const Certificate& found) {
  if (found.runner_up.empty()) return {};
  if (found.margin >= 1) {
    return Words::tr(
        "Margin: no plan on as few GPUs; errors of the predicted times do not change that.");
  }
  if (found.margin == 0) return Words::tr("Margin: none, another plan is as good.");
  const QString text =
      Words::tr(
          "Margin: another plan would win if it took %1 less than predicted and this one %1 "
          "more.")
          .arg(differenceText(found.margin));
  const double deviations = found.margin_deviations;
  if (deviations <= 0) return text;
  const QString far =
      deviations > 1000 ? Words::tr("more than 1000") : QString::number(deviations, 'f', 1);
  return (deviations < 1
              ? Words::tr("%1 The constants leave that open (it is %2 standard deviations of the "
                          "difference): take the two as equally good.")
              : Words::tr("%1 By the constants that is unlikely: it is %2 standard deviations of "
                          "the difference."))
      .arg(text, far);
}

QString joined(const std::vector<std::string>& settings) {
  QStringList words;
  for (const std::string& word : settings) words << QString::fromStdString(word);
  return words.join(' ');
}

QString fixed_text(const std::vector<std::string>& fixed, const std::vector<std::string>& unknown) {
  if (unknown.empty()) return Words::tr("Only plans with %1 were searched.").arg(joined(fixed));
  if (unknown == fixed) {
    return Words::tr("Only plans with %1 were searched; without that another may be better.")
        .arg(joined(fixed));
  }
  return Words::tr("Only plans with %1 were searched; without %2 another may be better.")
      .arg(joined(fixed), joined(unknown));
}

}  // namespace

QString planTitle(const Plan& plan) {
  const QString model = toText(plan.models.at("actor").path);
  return Words::tr("%1 on %2")
      .arg(model.section('/', -1, -1, QString::SectionSkipEmpty), toText(plan.cluster.name));
}

QString Headline::text() const {
  QStringList parts{step, off, cost, throughput, fits, largest, rivals, freer};
  parts.removeAll(QString());
  return parts.join(" \u00b7 ");
}

Headline headline_of(const Plan& plan, const std::optional<Calibration>& calibration,
                     const std::vector<std::string>& fixed, const Plan* best) {
  const Prediction& prediction = plan.prediction;
  Headline line;
  line.step = secondsText(prediction.step_s, prediction.step_error_s);
  if (is_one_step_off(plan.schedule)) line.off = Words::tr("one step off");
  line.throughput = Words::tr("%1 tok/s/GPU").arg(countText(prediction.tokens_per_s_per_gpu));
  if (objective_of(plan) == Objective::cost) line.cost = costText(cost_of(plan, priced(plan)));
  line.fits = fits_text(plan, calibration);
  line.largest = largest_text(plan);
  line.rivals = best == nullptr ? rivals_text(plan, fixed) : behind_first_text(*best, priced(plan));
  return line;
}

QString objectiveText(std::string_view name) {
  switch (objective_from(std::string(name)).value_or(Objective::step_time)) {
    case Objective::tokens_per_gpu:
      return Words::tr("tokens per second and GPU");
    case Objective::cost:
      return Words::tr("cost of a step");
    case Objective::fewest_gpus:
      return Words::tr("fewest GPUs");
    case Objective::step_time:
      break;
  }
  return Words::tr("time of a step");
}

QString costText(const StepCost& cost) {
  return (cost.money ? Words::tr("%1 a step") : Words::tr("%1 GPU seconds a step"))
      .arg(QString::number(cost.value, 'g', 4));
}

QString worse_than(const Plan& best, const Priced& other, const QString& name) {
  return worse_words(objective_of(best), compares_steps(best, other), worse_by(best, other),
                     {other.gpus, gpus_of(best)}, name);
}

QString behind_text(const Plan& plan, const PlanQuery& question, const FreerAnswer& freer) {
  constexpr qsizetype kLong = 28;  // letters, behind which the cause would have no room
  const Priced own = priced(plan);
  const QStringList beyond = fixed_beyond(question, freer.question);
  QString settings = beyond.join(' ');
  if (beyond.size() > 1 && settings.size() > kLong) {
    settings = Words::tr("%1 fixed choices").arg(beyond.size());
  }
  return worse_by(*freer.plan, own) < kNoPart
             ? Words::tr("as good as without %1").arg(settings)
             : worse_than(*freer.plan, own, Words::tr("the plan without %1").arg(settings));
}

QString not_compared_text(const std::string& uncertified) {
  return Words::tr("not compared: the plan is %1").arg(said(uncertified));
}

QString unproven_text(const std::string& uncertified) {
  return Words::tr("No search has proven this plan: it is %1.").arg(said(uncertified));
}

QString headline_of(const Infeasible& none) {
  if (none.shortages.empty()) {
    return Words::tr("No plan is possible: %1")
        .arg(none.reasons.empty() ? Words::tr("no reason is known") : said(none.reasons.front()));
  }
  const MemoryShortage& most = none.shortages.front();
  return Words::tr("Nothing fits: rank %1 needs %2 in %3 (%4), %5 too much")
      .arg(most.rank)
      .arg(partText(most.needed, most.limit), toText(name_of(most.phase)),
           toText(name_of(most.role)), bytesText(most.missing()));
}

QString proof_text(const Plan& plan, double seconds, const std::vector<std::string>& fixed,
                   const std::vector<std::string>& unknown) {
  const Certificate& found = plan.certificate;
  const QString took = seconds > 0 ? Words::tr(" in %1").arg(secondsText(seconds)) : QString();
  const QString proven =
      fixed.empty()
          ? Words::tr(
                "Proven best of the space%1: %2 candidates priced, %3 branches cut, gap %4 %.")
          : Words::tr(
                "Proven best of what is fixed%1: %2 candidates priced, %3 branches cut, gap %4 %.");
  QStringList lines{proven
                        .arg(took, countText(static_cast<double>(found.evaluated)),
                             countText(static_cast<double>(found.pruned)))
                        .arg(numberText(100 * found.gap, 2))};
  if (!fixed.empty()) {
    lines << (found.better.used() ? fixed_text(fixed, {}) : fixed_text(fixed, unknown));
  }
  if (found.better.used()) {
    lines << Words::tr("It is %1: %2, %3.")
                 .arg(behind_better_text(plan, Words::tr("the best plan without that")),
                      said(found.better.placement), secondsText(found.better.step_s));
  }
  lines << margin_text(found) << Words::tr("Left open: %1.").arg(said(kLeftOpen));
  lines.removeAll(QString());
  return lines.join('\n');
}

}  // namespace tessera::gui
