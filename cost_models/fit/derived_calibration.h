// Constants for a device that nobody has measured: the nearest shipped calibration with the
// device's own rates.
//
// Shipped tables hold ratios to a roofline, and ratios carry over between devices of one generation
// (configs/calibrations); rates come from the cluster's description. Pure functions of files.
#pragma once

#include <optional>
#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// The calibration shipped for the cluster's device, its rates scaled (and its name saying so)
/// where the cluster states another peak, memory rate or link than the machine that was fitted; for
/// any other device the nearest one's ratios with the cluster's peak, memory rate and link, named
/// "derived from ..." and with error bars of at least 15 %. Links that differ from the shipped
/// device's (PCIe cards, halved NVLink) scale the collectives' bandwidth. nullopt and Problems only
/// where the shipped file itself is missing. With several GPU types: of each view, and a name that
/// joins those of the types.
std::optional<Calibration> calibration_for_cluster(const ClusterSpec& cluster, Problems& problems);

/// The calibration of that name (a plan's provenance), where it can still be found; else, and with
/// several GPU types, whose names are joined, calibration_for_cluster.
std::optional<Calibration> calibration_named(const std::string& name, const ClusterSpec& cluster,
                                             Problems& problems);

}  // namespace tessera
