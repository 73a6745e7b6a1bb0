// A file that is written in parts is whole or as it was.
#include "cost_models/documents/text_parts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class TextPartsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() /
             ("text_parts_" +
              std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::ofstream(folder / "file") << "before";
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string content() const {
    std::ifstream in(folder / "file");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  fs::path folder;
};

TEST_F(TextPartsTest, TakesThePlaceOfTheFileOnceItIsWhole) {
  write_text_parts(folder / "file", [&](const auto& take) {
    take("one ");
    EXPECT_EQ(content(), "before");
    take("two");
  });
  EXPECT_EQ(content(), "one two");
  EXPECT_EQ(files(), 1);
}

TEST_F(TextPartsTest, LeavesTheFileAsItWasWhereAPartIsNotMade) {
  const auto broken = [](const auto& take) {
    take("one ");
    throw std::runtime_error("no second part");
  };
  EXPECT_THROW(write_text_parts(folder / "file", broken), std::runtime_error);
  EXPECT_EQ(content(), "before");
  EXPECT_EQ(files(), 1);
  EXPECT_THROW(write_text_parts(folder / "none/file", broken), Error);
}

}  // namespace
}  // namespace tessera
