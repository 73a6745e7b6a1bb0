// The command line as a user meets it, beside a plan file that all tests of a suite read.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/called.h"

namespace tessera {

namespace fs = std::filesystem;

// A plan file for all tests, made once.
class Usage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("tessera-usage-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    ASSERT_EQ(call(kAsk + "-o " + plan()).code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  static std::string plan() { return (folder_ / "plan.json").string(); }
  inline static fs::path folder_;
};

}  // namespace tessera
