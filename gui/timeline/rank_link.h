// SPDX-License-Identifier: GPL-3.0-or-later
// The fullest link of a rank in a simulated step (link_steps.h). A plain value.
#pragma once

#include <string>

namespace tessera::gui {

struct RankLink {
  double mean_load = 0;  // share of what the link carries, over the step
  std::string name;      // empty: nothing crosses any of the rank's links
};

}  // namespace tessera::gui
