// Scalars as TensorBoard reads them: an events file of TFRecords, written beside metrics.jsonl.
//
// A record is the length (8 bytes), its masked CRC-32C, the Event message, its masked CRC-32C, all
// little-endian (tensorflow/core/lib/io/record_writer.cc); the message is protocol-buffer wire
// format of tensorflow/core/util/event.proto, written by hand. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "executor/records/line_file.h"

namespace tessera {

class EventFile {
 public:
  /// Creates `folder`/events.out.tfevents.SECONDS.tessera (with a number behind it where that
  /// exists: TensorBoard reads all of a folder) and writes its first record. Throws Error (io).
  explicit EventFile(const std::filesystem::path& folder);

  /// One scalar per name; numbers that are not finite are left out. A step that cannot be written
  /// is left out, too (LineFile).
  void add_step(std::int64_t step, const std::map<std::string, double>& numbers);

  const std::filesystem::path& path() const { return file_->path(); }

 private:
  std::optional<LineFile> file_;
};

/// CRC-32C (Castagnoli), as RFC 3720 appendix B.4 checks it.
std::uint32_t crc32c(std::string_view bytes);

/// One record around a message.
std::string tf_record(std::string_view message);

/// An Event with the summary of `numbers`; `wall_time` in seconds since 1970.
std::string scalar_event(double wall_time, std::int64_t step,
                         const std::map<std::string, double>& numbers);

}  // namespace tessera
