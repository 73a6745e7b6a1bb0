// Names in a run's folder that its ranks and the command line both know.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tessera {

/// Folders of what the steps leave: checkpoints, and actors as Hugging Face folders.
inline constexpr std::string_view kCheckpointsFolder = "checkpoints", kExportsFolder = "hf_steps";

/// What a step leaves in either is named by this and its number, once it is complete.
inline constexpr std::string_view kStepPrefix = "global_step_";

/// The N of a folder's name "global_step_N"; nullopt for any other name.
inline std::optional<std::int64_t> step_named(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  return error == std::errc() && at == end && step >= 0 ? std::optional(step) : std::nullopt;
}

/// The last step that either folder holds something of; nullopt where there is none.
inline std::optional<std::int64_t> newest_step(const std::filesystem::path& folder) {
  std::optional<std::int64_t> newest;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    newest = std::max(newest, step_named(at->path().filename().string()));
  }
  return newest;
}

}  // namespace tessera
