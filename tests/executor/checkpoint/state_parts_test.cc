// A rank's state in several files: how it is cut, what a reader is told where one of them is
// missing, and what a kill in the middle of writing leaves.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "tests/executor/checkpoint/two_ranks.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Tensors of so many bytes, filled with numbers that their places and the seed tell.
struct Filled {
  std::vector<std::vector<std::uint8_t>> bytes;
  Filled(const std::vector<std::size_t>& sizes, std::uint64_t seed) {
    for (const std::size_t size : sizes) {
      std::vector<std::uint8_t>& each = bytes.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i) {
        each[i] = static_cast<std::uint8_t>(seed * 151 + bytes.size() * 31 + i);
      }
    }
  }
  std::vector<StateTensor> tensors() const {
    std::vector<StateTensor> tensors;
    for (std::size_t t = 0; t < bytes.size(); ++t) {
      const auto size = static_cast<std::int64_t>(bytes[t].size());
      const Box box{.dims = {Interval{0, size}}, .rank = 1};
      tensors.push_back(
          {{piece_name("actor.master/" + std::to_string(t), box), DType::uint8, {size}},
           reinterpret_cast<const std::byte*>(bytes[t].data())});
    }
    return tensors;
  }
};

/// The bytes of each part that is written.
std::vector<std::size_t> bytes_of_parts(const Filled& state, std::int64_t least_part_bytes) {
  const TemporaryFolder folder;
  Problems problems;
  EXPECT_TRUE(write_state(folder.path, 5, state.tensors(), least_part_bytes, problems));
  std::vector<std::size_t> parts;
  std::size_t next = 0;
  for (int part = 0; fs::exists(folder.path / rank_file_name(5, part)); ++part) {
    const fs::path path = folder.path / rank_file_name(5, part);
    const auto file = open_safetensors(path, problems);
    EXPECT_TRUE(file) << path;
    std::size_t& bytes = parts.emplace_back(0);
    for (const TensorView& view : file->tensors) {
      const std::vector<std::uint8_t>& wanted = state.bytes.at(next++);
      EXPECT_EQ(view.data.size(), wanted.size());
      EXPECT_EQ(std::memcmp(view.data.data(), wanted.data(), wanted.size()), 0);
      bytes += wanted.size();
    }
  }
  EXPECT_EQ(next, state.bytes.size()) << "every tensor, in its order";
  const auto first = open_safetensors(folder.path / rank_file_name(5), problems);
  EXPECT_EQ(first->metadata.at("parts"), std::to_string(parts.size()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()),
            static_cast<std::ptrdiff_t>(parts.size()));
  return parts;
}

/// No part is larger than its share by more than one tensor: each of its ends is within half of
/// one.
TEST(StateParts, AreOfNearlyEqualBytes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::size_t> sizes(random() % 30);
    for (std::size_t& size : sizes) size = random() % 3 == 0 ? random() % 400 : random() % 40;
    const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const std::size_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    const std::size_t least = 1 + random() % 500;
    const std::size_t count = std::clamp<std::size_t>(total / least, 1, kMostParts);
    const auto parts = bytes_of_parts(Filled(sizes, 1), static_cast<std::int64_t>(least));
    EXPECT_LE(parts.size(), count);
    for (const std::size_t bytes : parts) EXPECT_LE(bytes, total / count + largest + 1);
    EXPECT_TRUE(parts.size() == count || largest >= total / count) << i;
  }
}

TEST(StateParts, OfASmallStateAreOneFile) {
  const Filled state(std::vector<std::size_t>(100, 1000), 1);
  EXPECT_EQ(bytes_of_parts(state, kLeastPartBytes), std::vector<std::size_t>{100'000});
  EXPECT_EQ(bytes_of_parts(state, 50'000), (std::vector<std::size_t>{50'000, 50'000}));
  EXPECT_EQ(bytes_of_parts(state, 1000), std::vector<std::size_t>(4, 25'000));
  EXPECT_EQ(rank_file_name(3), "rank_00003.safetensors");
  EXPECT_EQ(rank_file_name(3, 2), "rank_00003_2.safetensors");
}

/// A run that wrote its ranks' states in one file each had no word about parts.
TEST(StateParts, AFileThatSaysNothingIsTheOnlyOneOfItsRank) {
  const TemporaryFolder folder;
  CheckpointManifest manifest = manifest_of(2);
  Problems problems;
  for (int rank = 0; rank < kRanks; ++rank) {
    const RankState state(rank, 2);
    const StateTensor tensor = state.tensors(rank).at(0);
    const std::span bytes(tensor.data, static_cast<std::size_t>(tensor.spec.bytes()));
    const fs::path file = folder.path / rank_file_name(rank);
    auto writer = SafetensorsWriter::create(
        file, {tensor.spec}, {{tensor.spec.name, checkpoint_digest(bytes)}}, problems);
    ASSERT_TRUE(writer && writer->write(bytes, problems) && writer->publish(problems));
    manifest.files.push_back(*describe_file(file, problems));
  }
  ASSERT_TRUE(write_manifest(folder.path / kManifestName, manifest, problems));
  const auto checkpoint = open_checkpoint(folder.path, problems);
  ASSERT_TRUE(checkpoint) << to_string(problems.at(0));
  EXPECT_EQ(checkpoint->files.size(), 2U);
  EXPECT_EQ(checkpoint->pieces.at("actor.master/w").size(), 2U);
}

class OfRows : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(save(folder_.path, 2, 0, {}, Pieces::rows).problems.empty());
  }
  std::string told() const {
    Problems problems;
    const auto checkpoint = open_checkpoint(path_, problems);
    EXPECT_EQ(checkpoint.has_value(), problems.empty());
    return checkpoint ? "" : to_string(problems.front());
  }
  /// Changes the files that the manifest lists.
  template <class Change>
  void list(Change&& change) {
    Problems problems;
    auto manifest = read_manifest(path_, problems);
    ASSERT_TRUE(manifest);
    change(manifest->files);
    ASSERT_TRUE(write_manifest(path_ / kManifestName, *manifest, problems));
  }

  TemporaryFolder folder_;
  fs::path path_ = checkpoint_path(folder_.path, 2);
};

TEST_F(OfRows, AllAreListedAndCounted) {
  Problems problems;
  const auto manifest = read_manifest(path_, problems);
  ASSERT_TRUE(manifest);
  std::vector<std::string> names;
  for (const CheckpointFile& file : manifest->files) names.push_back(file.name);
  EXPECT_EQ(names, files_of(Pieces::rows));
  std::int64_t bytes = 0;
  for (const std::string& name : names)
    bytes += static_cast<std::int64_t>(fs::file_size(path_ / name));
  EXPECT_EQ(save(folder_.path, 3, 0, {}, Pieces::rows).bytes, bytes);
}

TEST_F(OfRows, AMissingFileIsToldWithItsLength) {
  const fs::path file = path_ / rank_file_name(1, 2);
  const auto bytes = std::to_string(fs::file_size(file));
  fs::remove(file);
  EXPECT_EQ(told(),
            file.string() + ": found No such file or directory, expected " + bytes + " bytes");
}

TEST_F(OfRows, AManifestThatListsNotAllOfThemIsRefused) {
  list([](std::vector<CheckpointFile>& files) { files.pop_back(); });
  EXPECT_EQ(told(), (path_ / kManifestName).string() +
                        ":files: found no further file, expected rank_00001_3.safetensors, part 4 "
                        "of 4 of rank 1");
  list([](std::vector<CheckpointFile>& files) { files.erase(files.begin() + 2); });
  EXPECT_THAT(told(), HasSubstr("found rank_00000_3.safetensors, expected "
                                "rank_00000_2.safetensors, part 3 of 4 of rank 0"));
}

/// Looks at all files of a folder, whatever their names; how many are of the format. Of those every
/// tensor is whole.
int whole_files(const fs::path& folder) {
  int whole = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    Problems problems;
    const auto file = open_safetensors(entry.path(), problems);
    if (!file) continue;
    ++whole;
    for (const TensorView& view : file->tensors) {
      EXPECT_EQ(file->metadata.at(view.name), checkpoint_digest(view.data)) << entry.path();
    }
  }
  return whole;
}

TEST(StateParts, AReaderBesideTheWriterFindsWholeFilesAlone) {
  const TemporaryFolder folder;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    const Filled state(std::vector<std::size_t>(9, 300'000), 1);
    while (!done) {
      Problems problems;
      EXPECT_TRUE(write_state(folder.path, 0, state.tensors(), 1, problems));
      for (const auto& entry : fs::directory_iterator(folder.path)) fs::remove(entry.path());
    }
  });
  int whole = 0, looks = 0;
  for (; looks < 2000 || (whole == 0 && looks < 100'000); ++looks)
    whole += whole_files(folder.path);
  done = true;
  writer.join();
  EXPECT_GT(whole, 0);
}

/// A part of the header that never came to the disk, before or behind what did.
TEST(StateParts, ATornHeaderIsRefused) {
  const TemporaryFolder folder;
  Problems problems;
  ASSERT_TRUE(write_state(folder.path, 0, Filled({5000, 5000, 7}, 1).tensors(), 1 << 20, problems));
  const auto file = MappedFile::open(folder.path / rank_file_name(0), problems);
  ASSERT_TRUE(file);
  const std::vector<std::byte> whole(file->bytes().begin(), file->bytes().end());
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  const auto header = static_cast<std::ptrdiff_t>(sizeof length + length);
  for (std::ptrdiff_t cut = 0; cut <= header; ++cut) {
    for (const bool before : {true, false}) {
      std::vector<std::byte> torn = whole;
      std::fill(before ? torn.begin() : torn.begin() + cut,
                before ? torn.begin() + cut : torn.begin() + header, std::byte{0});
      if (torn == whole) continue;
      EXPECT_FALSE(parse_safetensors(torn, "torn", problems)) << cut << before;
    }
  }
}

/// Folders of checkpoints that are being written, or never were to their end.
std::vector<fs::path> unfinished(const fs::path& checkpoints) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path().extension() == ".partial") found.push_back(entry.path());
  }
  return found;
}

/// Kills a process that saves step after step, wherever it is; the newest checkpoint has every
/// byte.
TEST(StateParts, AKillWhileTheyAreWrittenLeavesWholeCheckpoints) {
  const TemporaryFolder folder;
  const std::vector<std::size_t> sizes(9, 300'000);
  std::mt19937_64 random(7);
  std::int64_t step = 0;
  int halves = 0;
  for (int kill = 0; kill < 30; ++kill) {
    const std::vector<fs::path> before = checkpoints_in(folder.path);
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointWriter writer(folder.path, 0, 1, {.newest = 2}, /*least_part_bytes=*/1);
      for (;;) {
        ++step;
        const Filled state(sizes, static_cast<std::uint64_t>(step));
        writer.begin(manifest_of(step), state.tensors());
        writer.settle(writer.await_own().empty());
        writer.prove(step);
      }
    }
    ASSERT_GT(child, 0);
    const auto saves_another = [&] {
      return checkpoints_in(folder.path) != before && !unfinished(folder.path).empty();
    };
    for (int looks = 0; looks < 20'000 && !saves_another(); ++looks) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const fs::path& each : unfinished(folder.path)) {
      ++halves;
      whole_files(each);
    }
    remove_leftovers(folder.path);
    const std::vector<fs::path> left = checkpoints_in(folder.path);
    ASSERT_FALSE(left.empty());
    Problems problems;
    const auto checkpoint = open_checkpoint(left.front(), problems);
    ASSERT_TRUE(checkpoint) << to_string(problems.at(0));
    ASSERT_EQ(checkpoint->files.at(0).size(), 4U);
    EXPECT_GT(checkpoint->manifest.step, step) << "what was saved stays";
    step = checkpoint->manifest.step;
    const Filled wanted(sizes, static_cast<std::uint64_t>(step));
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      const SavedPiece& piece = checkpoint->pieces.at("actor.master/" + std::to_string(t)).at(0);
      ASSERT_TRUE(check_digest(*piece.view, piece.digest, problems));
      ASSERT_EQ(std::memcmp(piece.view->data.data(), wanted.bytes[t].data(), sizes[t]), 0);
    }
  }
  EXPECT_GT(halves, 0) << "some kills met a save";
}

}  // namespace
}  // namespace tessera
