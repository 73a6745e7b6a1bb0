// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan, or the lack of one, comes down to: the line above the pictures.
//
// Words around what the planner computed; nothing is worked out here. Pure.
#pragma once

#include <QString>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/shared_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {

/// "qwen2.5-7b on h200-8": the actor's model and the cluster.
QString planTitle(const Plan& plan);

/// Parts that may be empty where the plan does not state them.
struct Headline {
  QString step;        // "144.38 +- 3.41 s"
  QString off;         // "one step off", where its rollout is
  QString throughput;  // "7,236 tok/s/GPU"
  QString cost;        // "812 GPU seconds a step", where costs are what is minimised
  QString fits;        // "fits with 98.4 % (125.7 of 133.0 GiB)"
  QString largest;     // "52 % in update_actor"
  QString rivals;      // "tied with row 2", "row 2: +4.1 %", "costs 4.1 % more than row 1"
  QString freer;       // "7.1 % behind the plan without actor.tp=8"

  /// All parts on one line.
  QString text() const;
};

/// Of a plan that its search certifies. `calibration`: the plan's, nullopt where it cannot be
/// found: then `fits` says so. `best`: the first row's plan where this is another's: its own search
/// had its settings fixed, and knows of no rivals. `fixed`: what the question leaves no choice of.
Headline headline_of(const Plan& plan, const std::optional<Calibration>& calibration,
                     const std::vector<std::string>& fixed, const Plan* best = nullptr);

/// What is minimised, by its name in files: "time of a step".
QString objectiveText(std::string_view name);

/// "1.25 a step" of the cluster's money, or "812 GPU seconds a step".
QString costText(const StepCost& cost);

/// "7.1 % behind row 1"; where not their steps make the difference in what `best`'s search
/// minimises, "costs 7.1 % more than row 1" or the like. `name`: of the best.
QString worse_than(const Plan& best, const Priced& other, const QString& name);

/// How much worse the answer to `question` is than one with less fixed, or that it is as good.
QString behind_text(const Plan& plan, const PlanQuery& question, const FreerAnswer& freer);

/// "Nothing fits: rank 0 needs 91.2 of 76.0 GiB in update_actor, 15.2 GiB too much".
QString headline_of(const Infeasible& none);

/// Where no search certifies the plan (Document::uncertified): in the place of its rivals, and of
/// its proof.
QString not_compared_text(const std::string& uncertified);
QString unproven_text(const std::string& uncertified);

/// How the answer was proven by its search, for those who ask: among what, by what margin, and what
/// was left open; a line each. `unknown`: those of the fixed settings without which nobody
/// searched.
QString proof_text(const Plan& plan, double seconds, const std::vector<std::string>& fixed,
                   const std::vector<std::string>& unknown);

}  // namespace tessera::gui
