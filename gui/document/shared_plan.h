// SPDX-License-Identifier: GPL-3.0-or-later
// A plan that several parts of the window look at; nobody changes it. Any thread.
//
// Whoever looks into it includes planner/plan/plan.h.
#pragma once

#include <memory>

namespace tessera {

struct Plan;

namespace gui {

/// nullptr = no plan.
using SharedPlan = std::shared_ptr<const Plan>;

}  // namespace gui
}  // namespace tessera
