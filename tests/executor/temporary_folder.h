// A folder for the files of one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tessera {

/// A folder of the test's own, removed at the end.
struct TemporaryFolder {
  std::filesystem::path path;

  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

}  // namespace tessera
