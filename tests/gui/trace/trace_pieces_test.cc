// SPDX-License-Identifier: GPL-3.0-or-later
// Traces that are read in pieces. The oracle is the reader that goes through the whole text.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "cost_models/documents/problem.h"
#include "gui/trace/trace_events.h"
#include "gui/trace/trace_pieces.h"

namespace tessera::gui {
namespace {

using Random = std::mt19937;

std::string below(Random& random, unsigned n) { return std::to_string(random() % n); }

std::string one_of(Random& random, const std::vector<std::string>& choices) {
  return choices[random() % choices.size()];
}

// What programs write, with what makes cutting hard: quotes, brackets and objects like events.
std::string event(Random& random) {
  const std::string kind = one_of(random, {"X", "X", "X", "B", "E", "M", "C", "i", "ph"});
  std::vector<std::string> fields{"\"ph\": \"" + kind + "\""};
  const auto add = [&](const std::string& field, unsigned one_in) {
    if (random() % one_in == 0) return;
    fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(random() % (fields.size() + 1)),
                  field);
  };
  const std::string ts = "\"ts\": " + one_of(random, {below(random, 900), below(random, 900) + ".5",
                                                      below(random, 9) + "e2"});
  add(ts, 200);
  add("\"dur\": " + below(random, 50), 5);
  add("\"pid\": " + one_of(random, {"1", "2", "-3", "2.0", "\"gpu\"", "18446744073709551615"}), 9);
  if (random() % 300 == 0) add("\"pid\": 1e60", 9);
  add("\"tid\": " + one_of(random, {"1", "7", "\"7\"", "0", "1e3", "null"}), 9);
  add("\"cat\": \"" + one_of(random, {"cpu_op", "kernel", ""}) + "\"", 3);
  const std::string name =
      kind == "M" ? one_of(random, {"thread_name", "process_name", "thread_sort_index", "other"})
                  : one_of(random, {"mm", "void f<{}>[2]", "a \\\"},{\\\"ph\\\": b", "\u00e9",
                                    "\\u00e9\\n", std::string(600, 'n')});
  add("\"name\": \"" + name + "\"", 9);
  add("\"args\": " + one_of(random, {"{\"name\": \"main\", \"sort_index\": -2}", "{}", "[]", "3",
                                     "{\"of\": [{\"a\": 1},{\"b\": {\"c\": []}}, {\"ph\": 1}]}",
                                     "{\"shapes\": [[1, 2], []], \"name\": 4}"}),
      3);
  add("\"ph\": \"" + kind + "\"", 40);
  std::string text = "{";
  for (const std::string& field : fields) text += (text.size() > 1 ? ", " : "") + field;
  return text + "}";
}

std::string trace(Random& random) {
  std::string list = "[";
  const unsigned events = 1 + random() % 60;
  for (unsigned i = 0; i < events; ++i) {
    list += (i == 0 ? "" : one_of(random, {",", ",\n", " , "})) + event(random);
  }
  if (random() % 10 == 0) return list + one_of(random, {"", ",", ",\n", ",,", ", {"});
  list += one_of(random, {"]", " ]", "\n]"});
  return one_of(random, {list, "{\"traceEvents\": " + list + "}",
                         "{\"a\": {\"traceEvents\": [1]}, \"b\": \"\\\"traceEvents\\\": [\", "
                         "\"traceEvents\" : " +
                             list + ", \"z\": [{\"ph\": \"X\"}]}"});
}

void damage(Random& random, std::string& text) {
  const std::size_t at = random() % text.size();
  switch (random() % 4) {
    case 0:
      text.erase(at, 1 + random() % 9);
      break;
    case 1:
      text[at] = static_cast<char>(random() % 256);
      break;
    case 2:
      text.resize(at);
      break;
    default:
      text.insert(at, one_of(random, {"]}[{\",:-1e999", ",{\"ph\": \"X\"}", "]", "\"", "7,"}));
  }
}

auto whole(const TraceEvents& events) {
  std::vector<std::tuple<double, double, std::uint32_t, std::uint32_t, std::uint32_t>> spans;
  for (const TraceEvent& one : events.spans) {
    spans.emplace_back(one.start_us, one.end_us, one.name, one.category, one.track);
  }
  std::vector<std::tuple<std::string, std::string, double, std::uint32_t>> lines;
  for (const auto* list : {&events.processes, &events.tracks}) {
    for (const TraceLine& line : *list) {
      lines.emplace_back(line.id, line.name, line.order, line.above);
    }
  }
  return std::tuple(spans, lines, events.texts, events.left_out);
}

std::string told(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) text += to_string(problem) + "\n";
  return text;
}

TEST(TracePieces, AreReadAsTheWholeIs) {
  Random random(5);
  int whole_ones = 0, in_pieces = 0, broken = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = trace(random);
    for (int edits = i % 4 == 0 ? 0 : static_cast<int>(random() % 3); edits > 0; --edits) {
      if (!text.empty()) damage(random, text);
    }
    const TraceLimits limits{.spans = i % 10 == 0 ? 9u : 1000u,
                             .tracks = i % 15 == 0 ? 3u : 100u,
                             .piece = 1 + random() % 400};
    TraceEvents one, other, pieces;
    Problems said, other_said;
    const bool is_whole = read_events(text, "t.json", limits, everything_is_wanted, one, said);
    const bool wanted =
        read_events_in_order(text, "t.json", limits, everything_is_wanted, other, other_said);
    ASSERT_EQ(is_whole, wanted) << text;
    ASSERT_EQ(told(said), told(other_said)) << text;
    if (wanted) {
      ASSERT_EQ(whole(one), whole(other)) << text;
    }
    whole_ones += wanted ? 1 : 0;
    broken += wanted ? 0 : 1;
    const auto cut = read_pieces(text, "t.json", limits, everything_is_wanted, pieces);
    if (cut && cut->empty()) {
      ++in_pieces;
      ASSERT_EQ(whole(pieces), whole(other)) << text;
    }
  }
  EXPECT_GT(broken, 1000);
  EXPECT_GT(whole_ones, 500);
  EXPECT_GT(in_pieces, whole_ones / 2);
}

// Every byte of the list is told once, and nothing is read behind the word that nobody waits.
TEST(TracePieces, TellHowFarTheyAreAndStop) {
  std::string text = "[";
  for (int i = 0; i < 500; ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"ph": "X", "ts": )" + std::to_string(i) + "}";
  }
  text += "]";
  const TraceLimits limits{.piece = 100};
  std::atomic<std::size_t> bytes = 0, parts = 0;
  TraceEvents events;
  Problems problems;
  const auto count = [&](std::string_view part) {
    bytes += part.size();
    parts += part.empty() ? 0 : 1;
    return true;
  };
  EXPECT_TRUE(read_events(text, "t.json", limits, count, events, problems));
  EXPECT_EQ(events.spans.size(), 500u);
  EXPECT_EQ(bytes, text.size() - 2 - (parts - 1)) << "brackets, and commas between the parts";
  EXPECT_GT(parts, 50u);

  std::atomic<int> asked = 0;
  const auto stop = [&](std::string_view) { return ++asked < 5; };
  EXPECT_FALSE(read_events(text, "t.json", limits, stop, events, problems));
  EXPECT_TRUE(problems.empty());
  EXPECT_LT(asked, 5 + 64) << "threads that were at it";
}

}  // namespace
}  // namespace tessera::gui
