// Response lengths that were measured: a list, or a CSV of one length per row.
//
// Pure but for the file; plain values, tokens. A table of up to kMostQuantiles rows is kept whole,
// a longer one as that many equally likely lengths; mean, deviation and the longest are always
// those of all rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/workload.h"

namespace tessera {

inline constexpr std::size_t kMostQuantiles = 512;

/// Precondition: at least one, each 1 or more.
LengthSpec lengths_of(std::vector<std::int64_t> tokens);

/// The column response_tokens, or the only one. nullopt and Problems (line and column) for a table
/// without it, without rows, or with a cell that is no whole number of tokens.
std::optional<LengthSpec> read_length_table(const std::filesystem::path& file, Problems& problems);

}  // namespace tessera
