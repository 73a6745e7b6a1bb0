// A calibration that tessera ships, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"

namespace tessera {

inline Calibration shipped(const std::string& name) {
  Problems problems;
  auto calibration = find_calibration(name, problems);
  EXPECT_TRUE(calibration) << (problems.empty() ? "" : to_string(problems[0]));
  return calibration.value_or(Calibration{});
}

}  // namespace tessera
