#include "executor/comm/mpi_world.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr const char* kModule = "libtessera_mpi.so";

/// Beside the executable, in ../lib as installed, and where this build puts it.
std::vector<std::filesystem::path> places() {
  std::error_code ignored;
  const std::filesystem::path executable =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {executable / kModule, executable / ".." / "lib" / kModule,
          std::filesystem::path(TESSERA_MODULE_DIR) / kModule};
}

}  // namespace

std::unique_ptr<Communicator> open_mpi_world(const MpiOptions& options) {
  std::string reason = "not found beside the executable, in ../lib, nor in " TESSERA_MODULE_DIR;
  void* module = nullptr;
  for (const std::filesystem::path& place : places()) {
    if (!std::filesystem::exists(place)) continue;
    // Global: MPI loads components that look up its symbols.
    module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module != nullptr) break;
    reason = ::dlerror();
  }
  if (module == nullptr) {
    throw Error(ExitCode::missing, std::string(kModule) + ": " + reason +
                                       " (apt install libopenmpi3 openmpi-bin, then build)");
  }
  using Open = Communicator* (*)(const MpiOptions&);
  const auto open = reinterpret_cast<Open>(::dlsym(module, "tessera_open_mpi_world"));
  if (open == nullptr)
    throw Error(ExitCode::internal, std::string(kModule) + " has no entry point");
  return std::unique_ptr<Communicator>(open(options));
}

}  // namespace tessera
