// SPDX-License-Identifier: GPL-3.0-or-later
// Where the list of events lies in the text of a trace, and where it can be cut between events.
//
// Nothing is checked: brackets and strings are counted. Offsets in bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera::gui {

/// [begin, end) is what stands between the brackets of the list.
struct EventList {
  std::size_t begin = 0, end = 0;
};

/// Behind the bracket that opens the list of events; nullopt = there is none.
std::optional<std::size_t> list_begin(std::string_view text);

/// Nothing or a comma: the program that wrote the list died.
bool is_missing_end(std::string_view behind_events);

/// Cuts the list from `begin` on into parts of about `piece` bytes, without the commas between
/// them. A cut is taken where an object with a ph follows another object: that this is not within
/// an event or a string shows where the parts are read. Empty where no cut is found, or the list
/// ends within an event.
std::vector<EventList> pieces_of(std::string_view text, std::size_t begin, std::size_t piece);

}  // namespace tessera::gui
