#include "executor/checkpoint/run_checkpoint.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/checkpoint/disk_reserve.h"
#include "executor/checkpoint/mapped_file.h"
#include "executor/threads/shared_work.h"
#include "simulator/timeline/run_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial", kRemoved = ".removed";
constexpr const char* kRuinedName = "ruined.txt";
constexpr std::size_t kLengthBytes = 8;  // of a safetensors header's length
constexpr int kRemovingThreads = 8;

/// The step of "global_step_N".
std::optional<std::int64_t> step_of(const fs::path& folder) {
  return step_named(folder.filename().string());
}

/// Files side by side: a file system takes its time to free large ones.
void remove_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  share_work(static_cast<std::int64_t>(files.size()), 1, kRemovingThreads,
             [&](std::int64_t at, std::int64_t /*end*/) {
               std::error_code ignored;
               fs::remove(files[static_cast<std::size_t>(at)], ignored);
             });
  fs::remove_all(folder, error);
}

/// Takes the folder out of sight first: half a checkpoint never has a checkpoint's name.
void remove_checkpoint(const fs::path& folder) {
  std::error_code error;
  const fs::path hidden =
      folder.parent_path() / ("." + folder.filename().string() + std::string(kRemoved));
  fs::rename(folder, hidden, error);
  if (!error) remove_files(hidden);
}

/// Gives the partial folder its name; what has that name goes away in the same moment.
bool rename_published(const fs::path& partial, const fs::path& folder, Problems& problems) {
  if (::rename(partial.c_str(), folder.c_str()) == 0) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
      remove_files(partial);
      return true;
    }
    remove_checkpoint(folder);  // a file system that cannot exchange names
    if (::rename(partial.c_str(), folder.c_str()) == 0) return true;
  }
  problems.push_back(
      {.file = folder.string(), .found = std::string(std::strerror(errno)) + " while renaming"});
  return false;
}

}  // namespace

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / (std::string(kStepPrefix) + std::to_string(step));
}

fs::path partial_path(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints /
         ("." + std::string(kStepPrefix) + std::to_string(step) + std::string(kPartial));
}

std::string rank_file_name(int rank, int part) {
  char text[40];
  std::snprintf(text, sizeof text, "rank_%05d", rank);
  return text + (part == 0 ? "" : "_" + std::to_string(part)) + ".safetensors";
}

std::vector<fs::path> checkpoints_in(const fs::path& checkpoints) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a > b; });
  std::vector<fs::path> folders;
  for (auto& [step, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

std::optional<CheckpointFile> describe_file(const fs::path& file, Problems& problems) {
  const auto mapped = MappedFile::open(file, problems);
  return mapped ? describe_file(file, mapped->bytes(), problems) : std::nullopt;
}

std::optional<CheckpointFile> describe_file(const fs::path& file, std::span<const std::byte> bytes,
                                            Problems& problems) {
  std::uint64_t length = 0;
  if (bytes.size() >= kLengthBytes) std::memcpy(&length, bytes.data(), kLengthBytes);
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes) {
    problems.push_back({.file = file.string(),
                        .found = std::to_string(bytes.size()) + " bytes",
                        .expected = "a safetensors file with its whole header"});
    return std::nullopt;
  }
  return CheckpointFile{.name = file.filename().string(),
                        .bytes = static_cast<std::int64_t>(bytes.size()),
                        .header = checkpoint_digest(bytes.first(kLengthBytes + length))};
}

bool publish_checkpoint(const fs::path& checkpoints, const CheckpointManifest& manifest,
                        Problems& problems) {
  const fs::path partial = partial_path(checkpoints, manifest.step);
  const bool done =
      write_manifest(partial / kManifestName, manifest, problems) &&
      rename_published(partial, checkpoint_path(checkpoints, manifest.step), problems) &&
      sync_directory(checkpoints, problems);
  if (!done) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    return false;
  }
  return true;
}

void note_ruined(const fs::path& folder, const std::string& how) {
  Problems ignored;
  write_file_atomically(folder / kRuinedName, how + "\n", ignored);
}

void forget_ruined(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kRuinedName, ignored);
}

std::string ruined_by(const fs::path& folder) {
  std::ifstream in(folder / kRuinedName);
  std::string how;
  std::getline(in, how);
  return how;
}

void remove_old_checkpoints(const fs::path& checkpoints, std::int64_t step, std::int64_t proven,
                            const CheckpointsToKeep& keep) {
  if (keep.newest <= 0 || proven < 0) return;
  const std::vector<fs::path> all = checkpoints_in(checkpoints);
  std::set<fs::path> kept;
  std::vector<std::pair<double, fs::path>> ranked;
  std::set<fs::path> later;
  std::int64_t newest = 0;  // of those that are this run's
  bool any_proven = false;
  for (const fs::path& folder : all) {
    const std::int64_t at = *step_of(folder);
    if (at > step) {
      later.insert(folder);
      continue;
    }
    const bool newest_proven = at <= proven && !std::exchange(any_proven, at <= proven);
    if (newest++ < keep.newest || newest_proven) kept.insert(folder);
    Problems ignored;
    const auto manifest = keep.best > 0 ? read_manifest(folder, ignored) : std::nullopt;
    if (!manifest) continue;
    const auto found = manifest->metrics.find(keep.metric);
    if (found == manifest->metrics.end() || !std::isfinite(found->second)) continue;
    ranked.emplace_back(keep.higher_is_better ? -found->second : found->second, folder);
  }
  // Of equals the newest, which comes first.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < ranked.size() && i < static_cast<std::size_t>(keep.best); ++i) {
    kept.insert(ranked[i].second);
  }
  for (const fs::path& folder : all) {
    if (!kept.contains(folder) && !later.contains(folder)) remove_checkpoint(folder);
  }
}

void remove_leftovers(const fs::path& checkpoints) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    const bool unfinished = name.starts_with("." + std::string(kStepPrefix)) &&
                            (name.ends_with(kPartial) || name.ends_with(kRemoved));
    if (unfinished || name == kReserveName) {
      left.push_back(entry.path());
    }
  }
  for (const fs::path& folder : left) fs::remove_all(folder, error);
}

}  // namespace tessera
