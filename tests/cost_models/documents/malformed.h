// Malformed inputs as one edit of a good text each, for every reader's test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {

/// `from` is replaced once by `to`; then some Problem must have this place, and contain the rest.
struct Edit {
  std::string from, to;
  std::string place, found, expected;
};

/// `accepts` parses a text and returns whether it gave a value.
inline void expect_refused(const std::string& good, std::span<const Edit> edits,
                           const std::function<bool(const std::string&, Problems&)>& accepts) {
  Problems none;
  ASSERT_TRUE(accepts(good, none)) << to_string(none.empty() ? Problem{} : none[0]);
  ASSERT_TRUE(none.empty());
  for (const Edit& edit : edits) {
    SCOPED_TRACE(edit.from + " -> " + edit.to);
    std::string text = good;
    const std::size_t at = text.find(edit.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, edit.from.size(), edit.to);
    Problems problems;
    EXPECT_FALSE(accepts(text, problems));
    bool named = false;
    std::string all;
    for (const Problem& problem : problems) {
      EXPECT_FALSE(problem.file.empty());
      all += to_string(problem) + "\n";
      named |= problem.place.starts_with(edit.place) &&
               problem.found.find(edit.found) != std::string::npos &&
               problem.expected.find(edit.expected) != std::string::npos;
    }
    EXPECT_TRUE(named) << "expected " << edit.place << ": " << edit.found << ", " << edit.expected
                       << "; got\n"
                       << all;
  }
}

}  // namespace tessera
