// SPDX-License-Identifier: GPL-3.0-or-later
// What is looked at, in every view at once: what one view selects the others show.
//
// A plain value; the session holds the one there is (gui/models/session.h).
#pragma once

#include <optional>

#include "cost_models/spec/workload.h"

namespace tessera::gui {

struct ViewState {
  int rank = -1;  // -1 = none
  std::optional<Phase> phase;
  bool operator==(const ViewState&) const = default;
};

}  // namespace tessera::gui
