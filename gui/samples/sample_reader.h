// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a part of a run's samples.jsonl, which may be far larger than memory.
//
// Steps rise in the file (a run that goes on has removed what it repeats), so that the part up to a
// step is found by halving, and the newest part is the end of the file. How much is read is bounded
// whatever the file is. One thread at a time, any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "gui/samples/sample.h"

namespace tessera::gui {

/// What is kept at most: samples, and bytes of their texts; `file_bytes` are read at once.
struct SampleLimits {
  std::size_t samples = 20'000;
  std::size_t text_bytes = std::size_t{96} << 20;
  std::int64_t file_bytes = std::int64_t{256} << 20;
  std::size_t line_bytes = std::size_t{16} << 20;
};

/// What one reading found.
struct SampleNews {
  std::vector<Sample> samples;  // that came, in the file's order
  bool restarted = false;       // they are all there are: the file became shorter
  bool earlier = false;         // the file has samples before the first that was read
  bool later = false;           // and behind the last
  Problems problems;
};

class SampleReader {
 public:
  /// `up_to`: the last step that is wanted; nullopt = the newest, and what is added to the file.
  explicit SampleReader(std::filesystem::path file, std::optional<std::int64_t> up_to = {},
                        const SampleLimits& limits = {});

  /// What is new since the last call; nothing while there is no file.
  SampleNews read();

 private:
  void begin(std::int64_t size);
  std::int64_t endOf(std::int64_t step, std::int64_t size) const;
  std::int64_t startBefore(std::int64_t end) const;
  void take(std::string&& line, SampleNews& news);
  void bound(SampleNews& news) const;

  std::filesystem::path file_;
  std::optional<std::int64_t> up_to_;
  SampleLimits limits_;
  bool began_ = false, told_ = false, skipping_ = false;
  std::int64_t first_ = 0;  // offset of the first line that was read
  std::int64_t end_ = 0;    // of what is wanted, where a step is
  std::int64_t offset_ = 0, lines_ = 0, line_at_ = 0;
  std::string half_line_;
};

}  // namespace tessera::gui
