// SPDX-License-Identifier: GPL-3.0-or-later
// Lines of samples.jsonl, recorded and made up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tessera::gui {

/// What a run of four steps, eight prompts and four samples each left.
inline const std::filesystem::path kSampled =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/gui/data/sampled";

/// One line: a response of so many tokens, `more` behind its last key.
inline std::string line_of(std::int64_t step, double score, const std::string& output,
                           int tokens = 2, const std::string& more = {}) {
  std::string ids;
  for (int i = 0; i < tokens; ++i) ids += (i == 0 ? "" : ",") + std::to_string(i);
  return R"({"input":"q)" + std::to_string(step) + R"(","output":")" + output +
         R"(","gts":"42","score":)" + std::to_string(score) + R"(,"step":)" + std::to_string(step) +
         R"(,"finished":true,"prompt_ids":[1],"response_ids":[)" + ids + "]" + more + "}\n";
}

}  // namespace tessera::gui
