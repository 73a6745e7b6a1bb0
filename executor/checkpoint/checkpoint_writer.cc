#include "executor/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/atomic_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kPoll = 10ms;
constexpr double kLastMoment = 1;    // seconds for others' files when the run ends early
constexpr double kFolderDelay = 60;  // seconds until a file written elsewhere must be seen here

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Where a rank tells that it could not write its files.
fs::path failure_note(const fs::path& partial, int rank) {
  return partial / (rank_file_name(rank) + ".failed");
}

}  // namespace

bool check_space(const fs::path& checkpoints, std::int64_t bytes, Problems& problems) {
  std::error_code error;
  fs::create_directories(checkpoints, error);
  const fs::space_info space = fs::space(checkpoints, error);
  if (error || static_cast<std::int64_t>(space.available) >= bytes) return true;
  problems.push_back({.file = checkpoints.string(),
                      .found = std::to_string(space.available) + " bytes free",
                      .expected = "at least the " + std::to_string(bytes) + " of a checkpoint"});
  return false;
}

CheckpointWriter::CheckpointWriter(fs::path checkpoints, int rank, int ranks,
                                   CheckpointsToKeep keep, std::int64_t least_part_bytes)
    : checkpoints_(std::move(checkpoints)),
      rank_(rank),
      ranks_(ranks),
      keep_(std::move(keep)),
      least_part_bytes_(least_part_bytes) {}

CheckpointWriter::~CheckpointWriter() {
  if (!pending()) return;
  recorded();
  give_up_after(kLastMoment);
  done_.wait();
}

void CheckpointWriter::begin(CheckpointManifest manifest, std::vector<StateTensor> tensors) {
  step_ = manifest.step;
  own_problems_.clear();
  recorded_ = false;
  own_promise_ = {};
  own_written_ = own_promise_.get_future();
  patience_until_ns_ = std::numeric_limits<std::int64_t>::max();
  done_ =
      std::async(std::launch::async, [this, manifest = std::move(manifest),
                                      tensors = std::move(tensors)] { write(manifest, tensors); });
}

const Problems& CheckpointWriter::await_own() {
  own_written_.wait();
  return own_problems_;
}

void CheckpointWriter::settle(bool all_written) {
  recorded();
  give_up_after(all_written ? kFolderDelay : 0);
  done_.wait();
  done_ = {};
  // A rank may have made it again after rank 0 had given up.
  std::error_code ignored;
  if (rank_ == 0) fs::remove_all(partial_path(checkpoints_, step_), ignored);
}

void CheckpointWriter::prove(std::int64_t step) {
  if (std::exchange(proven_, step) == step || rank_ != 0) return;
  await_removed();
  removed_ = std::async(std::launch::async,
                        [this, step] { remove_old_checkpoints(checkpoints_, step, step, keep_); });
}

void CheckpointWriter::await_removed() {
  if (removed_.valid()) removed_.get();
}

std::vector<CheckpointEnd> CheckpointWriter::take_ends() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ends_, {});
}

void CheckpointWriter::give_up_after(double seconds) {
  patience_until_ns_ = std::min<std::int64_t>(patience_until_ns_,
                                              now_ns() + static_cast<std::int64_t>(seconds * 1e9));
}

/// On the thread of its own.
void CheckpointWriter::write(const CheckpointManifest& manifest,
                             const std::vector<StateTensor>& tensors) {
  const std::int64_t start_ns = now_ns();
  try {
    write_own(manifest.step, tensors);
  } catch (const std::exception& error) {  // no memory: a run goes on without this checkpoint
    own_problems_.push_back({.found = error.what()});
  }
  const Problems failed = own_problems_;
  own_promise_.set_value();
  if (rank_ != 0) return;
  CheckpointEnd end{.step = manifest.step, .problems = failed};
  if (failed.empty()) end = complete(manifest);
  end.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
  const bool published = end.problems.empty();
  {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
  }
  if (published) {
    remove_old_checkpoints(checkpoints_, manifest.step, proven_, keep_);
  } else {
    std::error_code ignored;
    fs::remove_all(partial_path(checkpoints_, manifest.step), ignored);
  }
}

void CheckpointWriter::write_own(std::int64_t step, const std::vector<StateTensor>& tensors) {
  const fs::path partial = partial_path(checkpoints_, step);
  std::error_code error;
  fs::create_directories(partial, error);
  if (error) {
    own_problems_.push_back({.file = partial.string(),
                             .found = error.message(),
                             .expected = "a folder that can be written"});
    return;
  }
  if (!write_state(partial, rank_, tensors, least_part_bytes_, own_problems_)) {
    // Without room for the note rank 0 hears of it when the ranks settle.
    std::ofstream(failure_note(partial, rank_)) << to_string(own_problems_.front());
  }
}

/// Rank 0: waits for every file and the step's records, writes the manifest, gives the folder its
/// name.
CheckpointEnd CheckpointWriter::complete(CheckpointManifest manifest) {
  CheckpointEnd end{.step = manifest.step};
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!add_files(rank, manifest, end.problems)) return end;
  }
  for (const CheckpointFile& file : manifest.files) end.bytes += file.bytes;
  while (!recorded_) std::this_thread::sleep_for(kPoll);
  if (!publish_checkpoint(checkpoints_, manifest, end.problems)) end.bytes = 0;
  return end;
}

/// Waits for the files of a rank and adds them to the manifest's.
bool CheckpointWriter::add_files(int rank, CheckpointManifest& manifest, Problems& problems) const {
  const fs::path partial = partial_path(checkpoints_, manifest.step);
  const auto is_there = [&](const std::string& name, std::size_t /*part*/, std::size_t /*parts*/) {
    return await_file(partial / name, rank, problems);
  };
  const auto files = open_parts(partial, rank, is_there, problems);
  if (!files) return false;
  for (std::size_t part = 0; part < files->size(); ++part) {
    const fs::path file = partial / rank_file_name(rank, static_cast<int>(part));
    const auto described = describe_file(file, (*files)[part].mapping->bytes(), problems);
    if (!described) return false;
    manifest.files.push_back(*described);
  }
  return true;
}

bool CheckpointWriter::await_file(const fs::path& file, int rank, Problems& problems) const {
  std::error_code error;
  for (;;) {
    const bool last_look = now_ns() >= patience_until_ns_;
    if (fs::exists(file, error)) return true;
    const fs::path note = failure_note(file.parent_path(), rank);
    std::ifstream in(note);
    const std::string why(std::istreambuf_iterator<char>(in), {});
    // There before its words are: a note without any is looked at again.
    if (!why.empty() || (last_look && fs::exists(note, error))) {
      problems.push_back({.file = {}, .place = "rank " + std::to_string(rank), .found = why});
      return false;
    }
    if (last_look) {
      problems.push_back({.file = file.string(),
                          .found = "no such file",
                          .expected = "the file of rank " + std::to_string(rank),
                          .hint = "all ranks write into one folder that they share"});
      return false;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace tessera
