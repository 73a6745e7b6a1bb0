// SPDX-License-Identifier: GPL-3.0-or-later
// A text that takes longer to make than the window may wait: made in parts by another thread.
#pragma once

#include <functional>
#include <string_view>

namespace tessera::gui {

/// `done`: the share of the whole that has been made with this part, 0 to 1.
using TakePart = std::function<void(std::string_view part, double done)>;

/// Gives its parts in their order; throws what `take` throws. Any thread, once or more.
using LongText = std::function<void(const TakePart& take)>;

}  // namespace tessera::gui
