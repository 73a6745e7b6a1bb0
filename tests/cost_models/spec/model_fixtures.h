// The folder of saved models that the tests compare with. TESSERA_FIXTURES_DIR names another one.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace tessera {

inline std::filesystem::path fixtures() {
  const char* folder = std::getenv("TESSERA_FIXTURES_DIR");
  return folder != nullptr ? std::filesystem::path(folder)
                           : std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/fixtures/models";
}

}  // namespace tessera
