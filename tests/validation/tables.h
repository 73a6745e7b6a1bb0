// The published tables of tests/validation/data, swept: what every test of theirs begins with.
//
// Reads CSVs, prices every row (planner/sweep), prints; failures to read fail the test.
#pragma once

#include <string>

#include "tests/validation/score.h"

namespace tessera {

/// data/NAME.csv with its predictions. Rows of architectures that no reader knows are left out and
/// counted.
CsvTable swept_table(const std::string& name);

/// The same score, its rows printed under `title`.
Score printed(const std::string& title, const Score& score);

}  // namespace tessera
