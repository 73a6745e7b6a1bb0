// The pages of docs/commands against the commands' own help: every option is named, and no option
// is in the tables that a command does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/called.h"

namespace tessera {
namespace {

std::string help_of(const std::string& command) { return call(command + " --help").out; }

std::string page(const std::string& name) {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/docs/commands/" + name + ".md");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Words like "--why-not" that follow `before`.
std::set<std::string> options_in(const std::string& text, const std::string& before) {
  std::set<std::string> found;
  const std::string start = before + "--";
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t first = at + before.size();
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", first);
    if (end > first + 2) found.insert(text.substr(first, end - first));
  }
  return found;
}

/// Options by a command's help: "  --model TEXT" and "  -o,--output TEXT".
std::set<std::string> options_of(const std::string& command) {
  std::set<std::string> options;
  for (const char* before : {"\n  ", ","}) {
    options.merge(options_in(help_of(command), before));
  }
  options.erase("--help");
  return options;
}

struct Page {
  const char* name;
  std::vector<std::string> commands;
};
const std::vector<Page> kPages{{"plan", {"plan", "list"}},
                               {"explain", {"explain"}},
                               {"simulate", {"simulate"}},
                               {"reshard", {"reshard"}},
                               {"sweep", {"sweep"}},
                               {"interop", {"export", "import"}},
                               {"learn", {"compare", "learn", "advise"}},
                               {"run", {"run"}},
                               {"remote", {"serve", "mirror"}},
                               {"measure", {"doctor"}}};

TEST(CommandPages, NameEveryOption) {
  for (const Page& each : kPages) {
    const std::string text = page(each.name);
    for (const std::string& command : each.commands) {
      const auto options = options_of(command);
      EXPECT_FALSE(options.empty()) << command;
      EXPECT_THAT(text, testing::HasSubstr("tessera " + command)) << each.name;
      for (const std::string& option : options) {
        EXPECT_THAT(text, testing::HasSubstr("`" + option + "`")) << command;
      }
    }
  }
}

TEST(CommandPages, TablesNameNoOptionThatIsNotThere) {
  for (const Page& each : kPages) {
    if (std::string(each.name) == "measure")
      continue;  // its tables are of programs beside this one
    std::set<std::string> known;
    for (const std::string& command : each.commands) known.merge(options_of(command));
    for (const std::string& option : options_in(page(each.name), "\n| `")) {
      EXPECT_TRUE(known.contains(option)) << each.name << " " << option;
    }
  }
}

}  // namespace
}  // namespace tessera
