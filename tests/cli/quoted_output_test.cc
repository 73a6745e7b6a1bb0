// What the pages quote of planning commands is what the commands print, numbers included
// (scripts/quoted_output.py, which also puts the output of today into the pages).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Said {
  int code = -1;
  std::string text;
};

Said quoted_output(const std::string& words) {
  const std::string command = "python3 " TESSERA_SOURCE_DIR
                              "/scripts/quoted_output.py --program " TESSERA_BINARY_DIR
                              "/cli/tessera " +
                              words + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  Said said;
  std::array<char, 4096> piece{};
  while (const std::size_t read = fread(piece.data(), 1, piece.size(), pipe)) {
    said.text.append(piece.data(), read);
  }
  const int status = pclose(pipe);
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(QuotedOutput, IsWhatTheCommandsPrint) {
  const Said said = quoted_output("");
  EXPECT_EQ(said.code, 0) << said.text << "after a look at what changed: "
                          << "scripts/quoted_output.py --program PATH --write";
  EXPECT_GT(std::atoi(said.text.c_str()), 150) << "lines that are compared: " << said.text;
}

TEST(QuotedOutput, OfAnotherNumberIsFoundAndMadeAnew) {
  std::string pattern = (fs::temp_directory_path() / "tessera-page-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  const std::string right = text_of(TESSERA_SOURCE_DIR "/docs/commands/plan.md");
  std::string wrong = right;
  const std::size_t step = wrong.find("\nstep ");
  ASSERT_NE(step, std::string::npos);
  wrong[step + 6] = wrong[step + 6] == '9' ? '8' : '9';
  const std::string page = folder / "plan.md";
  std::ofstream(page) << wrong;
  const Said found = quoted_output(page);
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.text, HasSubstr(wrong.substr(step + 1, 12)));
  EXPECT_EQ(quoted_output("--write " + page).code, 0);
  EXPECT_EQ(text_of(page), right);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera
