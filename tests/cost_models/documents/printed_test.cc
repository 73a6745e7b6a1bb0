// Figures as text, against texts written by hand.
#include "cost_models/documents/printed.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera {
namespace {

TEST(Printed, IsWholeHoweverLongItIs) {
  EXPECT_EQ(printed("%5.1f %%|%-3s|%d", 2.25, "a", 7), "  2.2 %|a  |7");
  const std::string name(1000, 'x');
  EXPECT_EQ(printed("<%s>", name.c_str()), "<" + name + ">");
  EXPECT_EQ(printed("%s", ""), "");
}

TEST(Printed, RangesJoinNeighboursAlone) {
  const auto text = [](std::vector<int> numbers) { return ranges_text(numbers); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({4}), "4");
  EXPECT_EQ(text({0, 1, 2, 3, 6}), "0-3, 6");
  EXPECT_EQ(text({1, 3, 4, 9}), "1, 3-4, 9");
}

TEST(Printed, LowerCaseIsOfAsciiAlone) {
  EXPECT_EQ(lower_case("NVIDIA H100-SXM, \xc3\x84 [Z@`{"), "nvidia h100-sxm, \xc3\x84 [z@`{");
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace tessera
