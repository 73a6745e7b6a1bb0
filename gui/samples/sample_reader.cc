// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/samples/sample_reader.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera::gui {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 18;
constexpr int kTries = 8;  // lines in a row that may be broken where a step is looked for
constexpr std::size_t kMostProblems = 200;  // of one reading

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

/// Where the next line begins, at `offset` or behind it: a line begins behind every newline.
std::int64_t next_line(std::ifstream& stream, std::int64_t offset, std::int64_t size) {
  if (offset <= 0) return 0;
  stream.clear();
  stream.seekg(offset - 1);
  std::array<char, 1 << 14> buffer{};
  for (std::int64_t at = offset - 1; at < size; at += static_cast<std::int64_t>(buffer.size())) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto* end = buffer.data() + stream.gcount();
    const auto* found = std::find(static_cast<const char*>(buffer.data()), end, '\n');
    if (found != end) return at + (found - buffer.data()) + 1;
    if (stream.gcount() == 0) break;
  }
  return size;
}

}  // namespace

SampleReader::SampleReader(std::filesystem::path file, std::optional<std::int64_t> up_to,
                           const SampleLimits& limits)
    : file_(std::move(file)), up_to_(up_to), limits_(limits) {}

// The offset behind the last line of at most `step`.
std::int64_t SampleReader::endOf(std::int64_t step, std::int64_t size) const {
  std::ifstream stream(file_, std::ios::binary);
  // Whether the first whole line at or behind the offset is of a later step; where no line says,
  // as at the end, it is.
  const auto is_later = [&](std::int64_t offset) {
    std::int64_t at = next_line(stream, offset, size);
    for (int tries = 0; tries < kTries && at < size; ++tries) {
      const std::int64_t next = next_line(stream, at + 1, size);
      if (static_cast<std::size_t>(next - at) > limits_.line_bytes) return true;
      std::string line(static_cast<std::size_t>(next - at), '\0');
      stream.clear();
      stream.seekg(at);
      stream.read(line.data(), static_cast<std::streamsize>(line.size()));
      Problems unheard;  // told when the line is read
      if (!line.empty() && line.back() == '\n') line.pop_back();
      if (const auto sample = parse_sample(line, {}, {}, unheard)) return sample->step > step;
      at = next;
    }
    return true;
  };
  std::int64_t low = 0, high = size;  // a line before `low` is wanted, none at `high` is
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (is_later(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return next_line(stream, low, size);
}

// Where the last lines before `end` begin of which as many are read as the limits allow.
std::int64_t SampleReader::startBefore(std::int64_t end) const {
  const std::int64_t least = std::max<std::int64_t>(0, end - limits_.file_bytes);
  std::ifstream stream(file_, std::ios::binary);
  std::vector<char> block(static_cast<std::size_t>(kBlock));
  std::size_t lines = 0;
  for (std::int64_t high = end; high > least;) {
    const std::int64_t low = std::max(least, high - kBlock);
    stream.clear();
    stream.seekg(low);
    stream.read(block.data(), high - low);
    for (std::int64_t i = stream.gcount() - 1; i >= 0; --i) {
      if (block[static_cast<std::size_t>(i)] != '\n') continue;
      if (++lines > limits_.samples) return low + i + 1;
    }
    high = low;
  }
  return next_line(stream, least, end);
}

void SampleReader::begin(std::int64_t size) {
  end_ = up_to_ ? endOf(*up_to_, size) : std::numeric_limits<std::int64_t>::max();
  first_ = offset_ = line_at_ = startBefore(std::min(end_, size));
  lines_ = 0;
  half_line_.clear();
  skipping_ = false;
  began_ = true;
}

void SampleReader::take(std::string&& line, SampleNews& news) {
  ++lines_;
  const std::string place =
      first_ == 0 ? std::to_string(lines_) : "byte " + std::to_string(line_at_);
  if (std::exchange(skipping_, false)) {
    news.problems.push_back({file_.string(), place, "a line of more bytes",
                             "at most " + std::to_string(limits_.line_bytes) + " in a line", ""});
    return;
  }
  if (is_blank(line) || news.problems.size() >= kMostProblems) return;
  auto sample = parse_sample(line, file_.string(), place, news.problems);
  if (!sample) return;
  news.samples.push_back(*std::move(sample));
  if (news.samples.size() >= 2 * limits_.samples) bound(news);
}

// The newest that may be kept.
void SampleReader::bound(SampleNews& news) const {
  std::size_t bytes = 0, kept = 0;
  const std::size_t all = news.samples.size();
  while (kept < std::min(all, limits_.samples)) {
    bytes += news.samples[all - 1 - kept].bytes();
    if (bytes > limits_.text_bytes && kept > 0) break;
    ++kept;
  }
  if (kept == all) return;
  news.samples.erase(news.samples.begin(), news.samples.end() - static_cast<std::ptrdiff_t>(kept));
  news.earlier = true;
}

SampleNews SampleReader::read() {
  SampleNews news;
  std::error_code error;
  const auto status = std::filesystem::status(file_, error);
  if (!std::filesystem::is_regular_file(status)) {
    if (status.type() != std::filesystem::file_type::not_found && !std::exchange(told_, true)) {
      news.problems.push_back({file_.string(), "", "not a regular file", "a run's samples", ""});
    }
    return news;
  }
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file_, error));
  if (error) return news;
  news.restarted = began_ && size < offset_;
  if (!began_ || news.restarted) begin(size);
  const std::int64_t until = std::min(size, end_);
  if (until - offset_ > 2 * limits_.file_bytes) {  // it grew faster than it is read
    begin(size);
    news.restarted = true;
  }
  std::ifstream stream(file_, std::ios::binary);
  stream.seekg(offset_);
  std::vector<char> block(static_cast<std::size_t>(kBlock));
  while (offset_ < until) {
    stream.read(block.data(), std::min(kBlock, until - offset_));
    std::string_view text(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.empty()) break;
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      if (!skipping_) half_line_ += text.substr(0, end);
      skipping_ = skipping_ || half_line_.size() > limits_.line_bytes;
      offset_ += static_cast<std::int64_t>(end) + 1;
      take(std::exchange(half_line_, {}), news);
      line_at_ = offset_;
    }
    offset_ += static_cast<std::int64_t>(text.size());
    if (!skipping_) half_line_ += text;
    skipping_ = skipping_ || half_line_.size() > limits_.line_bytes;
    if (skipping_) half_line_.clear();
  }
  bound(news);
  news.earlier = news.earlier || first_ > 0;
  news.later = end_ < size;
  return news;
}

}  // namespace tessera::gui
