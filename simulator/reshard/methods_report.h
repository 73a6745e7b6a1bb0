// The comparison of reshard methods as text, JSON and CSV.
//
// Pure functions. JSON is described by docs/schemas/reshard.schema.json; bytes are whole numbers,
// seconds fractions, and the unit stands in the key.
#pragma once

#include <string>
#include <string_view>

#include "simulator/reshard/methods.h"

namespace tessera {

/// A table of all methods, the reasons of those that are not usable, and with `curve` the buckets.
std::string reshard_text(const ReshardComparison& comparison, std::string_view model, bool curve);
std::string reshard_json(const ReshardComparison& comparison, std::string_view model);
/// One row a method, or with `curve` one row a bucket and method.
std::string reshard_csv(const ReshardComparison& comparison, bool curve);

}  // namespace tessera
