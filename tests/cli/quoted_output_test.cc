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

Said quoted_output(const std::string& words,
                   const std::string& program = TESSERA_BINARY_DIR "/cli/tessera") {
  const std::string command = "python3 " TESSERA_SOURCE_DIR "/scripts/quoted_output.py --program " +
                              program + " " + words + " 2>&1";
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

fs::path new_folder() {
  std::string pattern = (fs::temp_directory_path() / "tessera-page-XXXXXX").string();
  return mkdtemp(pattern.data());
}

TEST(QuotedOutput, OfAnotherNumberIsFoundAndMadeAnew) {
  const fs::path folder = new_folder();
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

TEST(QuotedOutput, StaysWhereTheProgramIsMissing) {
  const fs::path folder = new_folder();
  const std::string page = folder / "page.md";
  const std::string text = "```\ntessera list families\n```\n\n```\nfamily  presets\n```\n";
  std::ofstream(page) << text;
  const Said said = quoted_output("--write " + page, folder / "no-such-tessera");
  EXPECT_EQ(said.code, 69);
  EXPECT_THAT(said.text, HasSubstr("no-such-tessera: no program; expected"));
  EXPECT_EQ(text_of(page), text);
  fs::remove_all(folder);
}

TEST(QuotedOutput, StaysWhereACommandFails) {
  const fs::path folder = new_folder();
  const std::string page = folder / "page.md";
  // The second command prints what the page quotes; the first one fails.
  const std::string text =
      "```\ntessera list nonsense\ntessera list families\n```\n\n```\nfamily  presets\n```\n";
  std::ofstream(page) << text;
  const Said said = quoted_output("--write " + page);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr(page + ":2: left as it is, `tessera list nonsense"));
  EXPECT_EQ(text_of(page), text);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera
