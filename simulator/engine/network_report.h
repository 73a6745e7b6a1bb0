// What a simulated step communicates and which links it fills, for people and for programs.
//
// Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "simulator/engine/simulate.h"

namespace tessera {

/// Communication by kind, phase and group, the busiest link of each kind, and what sharing links
/// costs. Empty where nothing communicates.
std::string network_text(const Simulation& simulation);

/// "communication", "links" and, where links are shared, "shared_links".
void add_network(const Simulation& simulation, nlohmann::ordered_json& json);

/// The load of links in per cent as counters, in the order of links: as many as have `most_events`
/// changes together (0 = any number), those that carry most.
std::vector<Counter> load_counters(const Simulation& simulation, std::size_t most_events);

}  // namespace tessera
