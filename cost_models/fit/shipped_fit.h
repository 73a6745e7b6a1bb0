// The calibrations that are shipped, from published measurements.
//
// Measured tables (cost_models/data: aiconfigurator's, Apache-2.0) become ratio tables and, by
// non-negative least squares, constants with their covariance. Devices that nobody measured there
// are derived: H800 from H100 with its NVLink, H20 from H200 with its own rates. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/fit/calibration_fit.h"

namespace tessera {

/// The three files of cost_models/data.
struct PublishedTables {
  Document matmul, attention, collectives;
};
std::optional<PublishedTables> read_published_tables(const std::filesystem::path& folder,
                                                     Problems& problems);

/// The calibration of one measured device ("a100", "h100", "h200", "b200", "l40s"): `base` brings
/// the data sheet's rates, the axes of its tables and everything that the data do not show. Rates
/// and floors of GEMMs and the constants of every collective are fitted again; tables are cut again
/// from the data. Nothing is marked as measured: it was not measured on the user's machine.
Calibration fit_shipped(const Calibration& base, const PublishedTables& tables,
                        std::vector<FitReport>& report, Problems& problems);

/// `source` with the rates that `base` states, its links scaled to `link_ratio` of the source's;
/// for h800 and h20.
Calibration derive_shipped(const Calibration& source, const Calibration& base, double link_ratio);

}  // namespace tessera
