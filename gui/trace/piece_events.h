// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a part of a trace's list, parsed by simdjson, with numbers of the part's own for
// texts, processes and threads.
//
// Plain values; a PieceParser belongs to one thread and keeps its room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/trace/event_log.h"

namespace tessera::gui {

struct PieceEvents {
  struct Track {
    std::uint32_t process = 0;
    std::string id;
  };
  struct Naming {
    std::string of, name;
    std::optional<double> sort_index;
    std::uint32_t line = 0;  // a process, or a track
  };
  std::vector<RawEvent> events;
  std::vector<std::string> texts, processes;
  std::vector<Track> tracks;
  std::vector<Naming> namings;  // of the events of M, RawEvent::name; kNoNaming: it names no line
};
constexpr std::uint32_t kNoNaming = ~std::uint32_t{0};

class PieceParser {
 public:
  PieceParser();
  ~PieceParser();
  PieceParser(const PieceParser&) = delete;
  PieceParser& operator=(const PieceParser&) = delete;

  /// nullopt where it is no list of objects without its brackets, or has what only
  /// read_events_in_order knows.
  std::optional<PieceEvents> parse(std::string_view piece);

 private:
  struct Room;
  std::unique_ptr<Room> room_;
};

}  // namespace tessera::gui
