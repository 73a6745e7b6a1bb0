// Rows of Parquet files as documents have them.
//
// The executable does not depend on libparquet: libtessera_parquet.so, which does, is opened here.
// It is built where pyarrow's wheel is found (scripts/setup.sh installs it); without it every file
// is refused with how to get it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Whether the module is there and can be opened.
bool reads_parquet();

/// Calls `take` with every row (from 1) as a map of those of `columns` that the file has, until it
/// returns false. Texts, numbers, booleans, lists, structs and nulls are values, and so is NaN,
/// pandas' missing value, as null; columns of other types, two of one name and infinite numbers are
/// Problems, and so is a file that is damaged or not there.
void read_parquet(const std::filesystem::path& file, const std::vector<std::string>& columns,
                  const std::function<bool(std::int64_t row, const Node& values)>& take,
                  Problems& problems);

}  // namespace tessera
