#include "executor/data/parquet_rows.h"

#include <dlfcn.h>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libtessera_parquet.so";

using Read = void (*)(const fs::path&, const std::vector<std::string>&,
                      const std::function<bool(std::int64_t, const Node&)>&, Problems&);

/// The module's function, or null and why there is none.
Read open_module(std::string& reason) {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error).parent_path();
  reason = std::string(kModule) + " is not there";
  for (const fs::path& place : {executable / kModule, executable / ".." / "lib" / kModule,
                                fs::path(TESSERA_MODULE_DIR) / kModule}) {
    if (!fs::exists(place, error)) continue;
    void* const module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) {
      return reinterpret_cast<Read>(::dlsym(module, "tessera_read_parquet"));
    }
    reason = ::dlerror();
  }
  return nullptr;
}

}  // namespace

bool reads_parquet() {
  std::string reason;
  return open_module(reason) != nullptr;
}

void read_parquet(const fs::path& file, const std::vector<std::string>& columns,
                  const std::function<bool(std::int64_t, const Node&)>& take, Problems& problems) {
  std::string reason;
  const Read read = open_module(reason);
  if (read != nullptr) return read(file, columns, take, problems);
  problems.push_back({.file = file.string(),
                      .found = "a Parquet file (" + reason + ")",
                      .expected = "JSON lines where there is no libparquet",
                      .hint = "scripts/setup.sh installs pyarrow; then run cmake and build again"});
}

}  // namespace tessera
