// The plan and the run file of those who ran in a folder before, while another attempt asks to go
// on there.
//
// An attempt that is refused leaves the folder with the documents that its steps ran under; one
// that runs under others keeps theirs beside its own: plan-1.json, run-1.yaml and so on. Whoever
// calls holds the folder's lock.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// The word of a run file that goes on from its newest checkpoint, as with_overrides takes it.
constexpr const char* kResumeWord = "trainer.resume_mode=auto";

struct EarlierDocument {
  std::filesystem::path file, copy;
};

/// Keeps RUN/plan.json and RUN/run.yaml under the next free number where the attempt's texts are
/// others, before these are written. A run file that only goes on is the same one. Throws Error
/// (io).
std::vector<EarlierDocument> keep_earlier(const std::filesystem::path& run, const std::string& plan,
                                          const std::string& config);

/// After a refusal: what was kept is in its place again. Throws Error (io).
void put_back(std::span<const EarlierDocument> documents);

/// The first of STEM-1EXTENSION, STEM-2EXTENSION, ... that is not there.
std::filesystem::path next_numbered(const std::filesystem::path& folder, const std::string& stem,
                                    const std::string& extension);

}  // namespace tessera
