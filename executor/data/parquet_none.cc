// Parquet in a build without libparquet.
#include "cost_models/documents/problem.h"
#include "executor/data/parquet_rows.h"

namespace tessera {

bool reads_parquet() { return false; }

void read_parquet(const std::filesystem::path& file, const std::vector<std::string>&,
                  const std::function<bool(std::int64_t, const Node&)>&, Problems& problems) {
  problems.push_back({.file = file.string(),
                      .found = "a Parquet file",
                      .expected = "JSON lines: this build has no libparquet",
                      .hint = "scripts/setup.sh installs pyarrow; then run cmake and build again"});
}

}  // namespace tessera
