// The files of a run's folder that are served to another host: their names, and how they change.
//
// Only names of this table are ever opened: no path of a stranger is. Symbolic links and all but
// regular files count as absent. Sizes are bytes, times nanoseconds of the host's system clock
// since 1970. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// `appended`: grows at its end, and what is there stays but for a cut of its end, after which it
/// grows anew. `rewritten`: another version replaces it whole.
enum class FileGrowth : std::uint8_t { appended, rewritten };

struct ServedName {
  std::string_view name;
  FileGrowth growth;
};

/// Small ones first: in this order they are copied.
inline constexpr std::array kServedNames{
    ServedName{"stop", FileGrowth::rewritten},
    ServedName{"pause", FileGrowth::rewritten},
    ServedName{"plan.json", FileGrowth::rewritten},
    ServedName{"run.yaml", FileGrowth::rewritten},
    ServedName{"oom.json", FileGrowth::rewritten},
    ServedName{"metrics.jsonl", FileGrowth::appended},
    ServedName{"log.txt", FileGrowth::appended},
    ServedName{"rolled_back_metrics.jsonl", FileGrowth::appended},
    ServedName{"rolled_back_samples.jsonl", FileGrowth::appended},
    ServedName{"samples.jsonl", FileGrowth::appended},
    ServedName{"trace.json", FileGrowth::rewritten}};

/// nullptr where the name is none of them.
const ServedName* find_served(std::string_view name);

/// One version of a file.
struct RunFile {
  std::string name;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t id = 0;  // of the file itself (its inode): another file of the name has another one

  bool operator==(const RunFile&) const = default;
};

/// A file that is open to be read; closes it.
class ServedFile {
 public:
  /// nullopt where RUN has no such file, or it is not regular.
  static std::optional<ServedFile> open(const std::filesystem::path& run, const ServedName& name);

  ServedFile(ServedFile&& other) noexcept;
  ServedFile& operator=(ServedFile&&) = delete;
  ~ServedFile();

  const RunFile& file() const { return file_; }
  /// Bytes from `offset` on, at most `size`; fewer at the end of the file or where reading fails.
  std::string read(std::int64_t offset, std::size_t size) const;

 private:
  ServedFile(int descriptor, RunFile file) : descriptor_(descriptor), file_(std::move(file)) {}
  int descriptor_;
  RunFile file_;
};

}  // namespace tessera
