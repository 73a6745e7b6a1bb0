// The words that a shell script would start a program with.
#include "planner/interop/shell/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> words(std::string_view script) {
  Problems problems;
  std::vector<std::string> all;
  for (const ShellCommand& command : shell_commands(script, "s", problems)) {
    for (const ShellWord& word : command) all.push_back(word.known ? word.text : "?");
  }
  EXPECT_TRUE(problems.empty());
  return all;
}

TEST(ShellWords, AreWhatBashPasses) {
  using V = std::vector<std::string>;
  EXPECT_EQ(words("A=1 B=2\necho $A${B} '$A' \"$A b\" c\\ d"),
            (V{"echo", "12", "$A", "1 b", "c d"}));
  EXPECT_EQ(words("echo ${X:-de f} ${X:-\"g\"} ${A:=9} $A ${A:+set}"),
            (V{"echo", "de", "f", "g", "9", "9", "set"}));
  EXPECT_EQ(words("L=(a 'b c')\nL+=(d)\nrun \"${L[@]}\" x"), (V{"run", "a", "b c", "d", "x"}));
  EXPECT_EQ(words("n=3; f $((n * (2 + 4) / 2 - 1)) $((1/0)) $(date) $UNSET"),
            (V{"f", "8", "?", "?", "?"}));
  EXPECT_EQ(words("a b \\\n  c # no\nd 2>&1 >x <y | e && f"), (V{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(words("cat <<EOF\nnot a=command\nEOF\ng \"$@\" h"), (V{"cat", "g", "h"}));
  EXPECT_EQ(words("if [ 1 ]; then export A=5; fi; k $A"), (V{"[", "1", "]", "k", "5"}));
}

// Each line was given to bash 5.2: printf '<%s>' of the words.
TEST(ShellWords, AreSplitWhereExpansionsStandOutsideOfQuotes) {
  using V = std::vector<std::string>;
  EXPECT_EQ(words("A=\" a=1 \\\n  b=2\n\"; run $A \"$A\" x${A}y $E"),
            (V{"run", "a=1", "b=2", " a=1   b=2\n", "x", "a=1", "b=2", "y", "?"}));
  EXPECT_EQ(words("A='1 2'; B=$A; C=(${A} \"$A\"); run $B. ${C[@]} ${Q:-$A} \"${Q:-$A}\""),
            (V{"run", "1", "2.", "1", "2", "1", "2", "1", "2", "1 2"}));
  EXPECT_EQ(words("C=('--fp8-format hybrid' '' --bf16); D=(\"${C[@]}\" x); run ${C[@]} a${C[@]}b "
                  "\"${C[@]}\" ${D[@]}"),
            (V{"run", "--fp8-format", "hybrid", "--bf16", "a--fp8-format", "hybrid", "--bf16b",
               "--fp8-format hybrid", "", "--bf16", "--fp8-format", "hybrid", "--bf16", "x"}));
  EXPECT_EQ(words("A=; B='  '; run $A $B x ${A:+y}"), (V{"run", "x"}));
  EXPECT_EQ(words("A=\"a=1 b=$HOME/x c=2\"; run $A d=3"), (V{"run", "a=1", "?", "c=2", "d=3"}));
}

TEST(ShellWords, AreThoseOfTheBranchesThatAreTaken) {
  const auto value = [](const std::string& script) { return words(script + "\nrun $X").back(); };
  EXPECT_EQ(value("D=gpu; case \"${D}\" in npu) X=1 ;; gpu|cuda) X=2;; *) X=3; esac"), "2");
  EXPECT_EQ(value("D=b; case $D in\n# two\n(a*) X=1 ;;\n *) X=3 ;;\nesac"), "3");
  EXPECT_EQ(value("M=async; if [ \"$M\" = \"sync\" ]; then X=1; elif [ $M == async ]\nthen X=2; "
                  "else X=3; fi"),
            "2");
  EXPECT_EQ(value("P=4; [ \"$P\" -gt 1 ] && X=2 || X=null"), "2");
  EXPECT_EQ(value("P=1; [ \"$P\" -gt 1 ] && X=2 || X=null"), "null");
  EXPECT_EQ(value("if [[ -n \"$E\" && 1 == 2 || a == a* ]]; then X=1; else X=2; fi"), "1");
  EXPECT_EQ(value("if ! [ -z \"\" ]; then X=1; if true; then X=4; fi; else X=2; fi"), "2");
  EXPECT_EQ(value("N=8 P=3; if (( N % P != 0 )); then X=$((N > 4 ? 5 : 6)); else X=2; fi"), "5");
  EXPECT_EQ(value("X=1; [ a = b ] && { X=2; X=3; }"), "1");
  EXPECT_EQ(value("if [ 1 ] && { [ a = b ] || [ b = b ]; }; then X=1; else X=2; fi"), "1");
  EXPECT_EQ(value("if [ 1 = 2 ] && { [ b = b ]; }; then X=1; else X=2; fi"), "2");
}

// bash 5.2 gives these values on a host with NVIDIA GPUs, without torch_npu, whose environment does
// not have the words.
TEST(ShellWords, AreThoseOfNvidiaGpusWhereOnlyARunWouldTell) {
  std::vector<std::string> notes;
  const auto value = [&notes](const std::string& script) {
    Problems problems;
    notes.clear();
    const auto commands = shell_commands(script + "\nrun $X", "s.sh", problems, &notes);
    EXPECT_TRUE(problems.empty()) << script;
    return commands.back().back().text;
  };
  const std::string device =
      "D=${D:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}\n";
  EXPECT_EQ(value(device + "case \"${D}\" in gpu) X=1;; npu) X=2;; *) exit 1;; esac"), "1");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "s.sh:1: $(python3 -c 'import torch_npu' 2>/de... is read as 'gpu', as on NVIDIA GPUs "
            "without torch_npu.");
  EXPECT_EQ(value(device + "X=1; L=(a); if [ \"${D}\" = npu ]; then X=2; L+=(b); fi"), "1");
  EXPECT_EQ(value("D=npu\n" + device + "X=1; if [ $D = npu ]; then X=2; fi"), "2");
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(value("if python3 -c 'import torch_npu'; then X=2; else X=1; fi"), "1");
  EXPECT_EQ(value("D=$(which_device); case $D in npu) X=2;; cuda | gpu) X=1;; *) X=3;; esac"), "1");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(
      notes[0],
      "s.sh:1: only a run tells $(which_device), which decides a branch here: that of GPUs is "
      "taken.");
  EXPECT_EQ(value("if [ \"$(which_device)\" = gpu ]; then X=1; else X=2; fi"), "1");
  EXPECT_EQ(value("X=0\ncase $UNSET in a) X=1;; b) X=2;; esac"), "0");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "s.sh:2: only a run tells $UNSET, which decides a branch here: none is taken.");
  EXPECT_EQ(value("case $UNSET in a) X=1;; *) X=2;; esac"), "2");
  EXPECT_THAT(notes[0], HasSubstr("the default one is taken"));
  EXPECT_EQ(value("if [ -f x ]; then X=1; else X=2; fi"), "2");
  EXPECT_THAT(notes[0], HasSubstr("only a run tells whether `[ -f x ]` succeeds"));
  EXPECT_EQ(value("X=3; if [ \"$UNSET\" = a ]; then X=1; elif [ 1 ]; then X=2; fi"), "2");
  EXPECT_EQ(value("X=3; if [ \"$UNSET\" = a ]; then X=1; if [ -f y ]; then X=4; fi; fi"), "3");
  // The trainer may start in any of them, with its branch's variables.
  EXPECT_EQ(words("X=0; if [ -f x ]; then X=1; run $X; else run $X; fi"),
            (std::vector<std::string>{"[", "-f", "x", "]", "run", "1", "run", "0"}));
}

TEST(ShellWords, RefuseCopiesOfVariablesWithoutBound) {
  std::string script = "A=" + std::string(100000, 'x') + "\n";
  for (int i = 0; i < 1000; ++i) script += "if $U; then A+=y; fi\n";
  Problems problems;
  shell_commands(script, "s.sh", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].found, HasSubstr("16 MiB"));
}

// Each in a buffer of exactly its size, for AddressSanitizer.
TEST(ShellWords, ReadEveryBeginningOfAScriptToItsEnd) {
  const std::string script =
      "if [[ a && ! $A ]] || ((1)); then A=; fi; case $A in (a|b) ;; *) { :; } ;; esac\n"
      "A=\nB=(x \"$A\") C+=1; run ${B[@]} $((1 + 2)) `id` 2>&1 <<<word <<E | tee 'l' > f\nE\nD=";
  for (std::size_t size = 0; size <= script.size(); ++size) {
    const std::vector<char> begin(script.begin(), script.begin() + static_cast<long>(size));
    Problems problems;
    const auto commands = shell_commands({begin.data(), begin.size()}, "a.sh", problems);
    EXPECT_LE(commands.size(), 6U) << size;
  }
}

TEST(ShellWords, RefuseWhatDoesNotEndAndGrowsWithoutBound) {
  for (const char* script : {"a 'b", "a \"b", "a $(b", "a ${b", "a $((b", "a `b", "L=(a b"}) {
    Problems problems;
    shell_commands(script, "s.sh", problems);
    EXPECT_EQ(problems.size(), 1U) << script;
  }
  std::string bomb = "a=xxxxxxxxxx\n";
  for (char c = 'a'; c < 'z'; ++c) {
    const std::string next(1, static_cast<char>(c + 1));
    bomb += next + "=";
    for (int i = 0; i < 10; ++i) bomb += "$" + std::string(1, c);
    bomb += "\n";
  }
  Problems problems;
  shell_commands(bomb + "echo $z\n", "s.sh", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].found, HasSubstr("1 MiB"));
}

}  // namespace
}  // namespace tessera
