// Runs a committed Python script with the venv that has torch, transformers and tokenizers.
//
// TESSERA_VENV decides, then the Python CMake found, then .venv of the source folder. A test that
// has none is skipped and says so.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/executor/temporary_folder.h"

namespace tessera {

inline std::string python_with(const std::string& module) {
  std::vector<std::string> candidates;
  if (const char* venv = std::getenv("TESSERA_VENV")) {
    candidates.push_back(std::string(venv) + "/bin/python3");
  }
  candidates.push_back(TESSERA_PYTHON);
  candidates.push_back(TESSERA_SOURCE_DIR "/.venv/bin/python3");
  for (const std::string& python : candidates) {
    if (python.empty()) continue;
    const std::string probe = "'" + python +
                              "' -c 'import importlib.util as u, sys; "
                              "sys.exit(u.find_spec(\"" +
                              module + "\") is None)' 2>/dev/null";
    if (std::system(probe.c_str()) == 0) return python;
  }
  return {};
}

/// Exit status of `python script arguments`; its output goes to the test's.
inline int run_python(const std::string& python, const std::string& arguments) {
  const std::string command = "HF_HUB_OFFLINE=1 '" + python + "' " + arguments;
  return std::system(command.c_str());
}

}  // namespace tessera
