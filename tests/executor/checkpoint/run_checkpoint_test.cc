// Checkpoints on disk: what is damaged is told by name, what is half done has no name, and which of
// them stay.
#include "executor/checkpoint/run_checkpoint.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/disk_reserve.h"
#include "executor/checkpoint/state_file.h"
#include "tests/executor/checkpoint/two_ranks.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names(const fs::path& checkpoints) {
  std::vector<std::string> found;
  for (const fs::path& folder : checkpoints_in(checkpoints)) found.push_back(folder.filename());
  return found;
}

// A run that went on from before a later checkpoint, as that one is damaged, keeps what it writes.
TEST(RunCheckpoint, OneThatTheRunBeganBeforeIsNoneOfTheNewest) {
  const TemporaryFolder folder;
  const CheckpointsToKeep keep{.newest = 1};
  save(folder.path, 6);
  save(folder.path, 8);
  save(folder.path, 7, 0, keep);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_8", "global_step_7"));
  save(folder.path, 8, 0, keep);  // in the other's place
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_8"));
}

TEST(RunCheckpoint, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  const CheckpointEnd end = save(folder.path, 10);
  ASSERT_TRUE(end.problems.empty()) << to_string(end.problems.at(0));
  Problems problems;
  const auto checkpoint = open_checkpoint(checkpoint_path(folder.path, 10), problems);
  ASSERT_TRUE(checkpoint) << to_string(problems.at(0));
  CheckpointManifest wanted = manifest_of(10);
  wanted.files = checkpoint->manifest.files;
  EXPECT_EQ(checkpoint->manifest, wanted);
  EXPECT_EQ(end.bytes, wanted.files.at(0).bytes + wanted.files.at(1).bytes);
  const auto& pieces = checkpoint->pieces.at("actor.master/w");
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[1].box.dims[0], (Interval{4, 8}));
  float value = 0;
  std::memcpy(&value, pieces[1].view->data.data(), sizeof value);
  EXPECT_EQ(value, 10100.0F);
  EXPECT_TRUE(check_digest(*pieces[1].view, pieces[1].digest, problems));
  EXPECT_FALSE(fs::exists(partial_path(folder.path, 10)));
}

/// Whichever byte of whichever file changes, reading ends with a Problem that names the file.
TEST(RunCheckpoint, EveryChangedByteIsToldWithItsFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path, 3).problems.empty());
  const fs::path checkpoint = checkpoint_path(folder.path, 3);
  for (const std::string& name :
       {std::string(kManifestName), rank_file_name(0), rank_file_name(1)}) {
    const std::string whole = text_of(checkpoint / name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x11);
      std::ofstream(checkpoint / name, std::ios::binary) << changed;
      Problems problems;
      const auto open = open_checkpoint(checkpoint, problems);
      if (open) {
        for (const SavedPiece& piece : open->pieces.at("actor.master/w")) {
          check_digest(*piece.view, piece.digest, problems);
        }
      }
      ASSERT_FALSE(problems.empty()) << name << " byte " << at;
      EXPECT_THAT(problems.front().file, HasSubstr(name)) << at;
    }
    std::ofstream(checkpoint / name, std::ios::binary) << whole;
  }
}

TEST(RunCheckpoint, AFileThatIsShortOrMissingIsToldWithItsLength) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path, 3).problems.empty());
  const fs::path checkpoint = checkpoint_path(folder.path, 3);
  const auto bytes = fs::file_size(checkpoint / rank_file_name(1));
  fs::resize_file(checkpoint / rank_file_name(1), bytes - 5);
  Problems problems;
  EXPECT_FALSE(read_manifest(checkpoint, problems));
  EXPECT_THAT(to_string(problems.at(0)), HasSubstr("rank_00001.safetensors"));
  EXPECT_EQ(problems.at(0).found, std::to_string(bytes - 5) + " bytes");
  EXPECT_EQ(problems.at(0).expected, std::to_string(bytes) + " bytes");
  fs::remove(checkpoint / rank_file_name(1));
  problems.clear();
  EXPECT_FALSE(read_manifest(checkpoint, problems));
  EXPECT_THAT(to_string(problems.at(0)), HasSubstr("rank_00001.safetensors"));
}

TEST(RunCheckpoint, TheSameStepAgainReplacesTheOlderOne) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path, 4, 0.25).problems.empty());
  ASSERT_TRUE(save(folder.path, 4, 0.5).problems.empty());
  Problems problems;
  EXPECT_EQ(read_manifest(checkpoint_path(folder.path, 4), problems)->metrics.begin()->second, 0.5);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1);
}

TEST(RunCheckpoint, TheNewestStayAndTheBestBesideThem) {
  const TemporaryFolder folder;
  const CheckpointsToKeep keep{.newest = 2, .best = 1};
  const double scores[] = {0.1, 0.9, 0.3, 0.2, 0.4};
  for (int step = 1; step <= 5; ++step) save(folder.path, step, scores[step - 1], keep);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_5", "global_step_4", "global_step_2"));
  const CheckpointsToKeep lowest{.newest = 1, .best = 1, .higher_is_better = false};
  save(folder.path, 10, 0.7, lowest);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_10", "global_step_4"))
      << "by number, and the lowest score of those that were left";
}

/// Whether a state is ruined may be known after the next step alone.
TEST(RunCheckpoint, AnOlderOneStaysUntilTheStepAfterTheNewerWentWell) {
  const TemporaryFolder folder;
  CheckpointWriter writer(folder.path, 0, 1, {.newest = 1});
  const auto save_one = [&](std::int64_t step) {
    const RankState state(0, step);
    writer.begin(manifest_of(step), state.tensors(0));
    writer.settle(writer.await_own().empty());
    writer.await_removed();
  };
  save_one(1);
  save_one(2);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_2", "global_step_1"));
  writer.prove(2);
  writer.await_removed();
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_2"));
  save_one(3);
  save_one(4);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_4", "global_step_2"))
      << "the newest, and the newest that the run went on from";
  writer.prove(4);
  writer.await_removed();
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_4"));
}

TEST(RunCheckpoint, WhatADeadRunLeftHasNoNameAndGoes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path, 4).problems.empty());
  fs::create_directories(partial_path(folder.path, 8));
  std::ofstream(partial_path(folder.path, 8) / rank_file_name(0)) << "half";
  fs::create_directories(folder.path / ".global_step_2.removed");
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_4"));
  remove_leftovers(folder.path);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1);
}

/// Room is taken on the disk itself, not in the length of a file alone.
TEST(DiskReserve, IsHeldUntilItIsNeededAndNeverMoreThanAThird) {
  const TemporaryFolder folder;
  const fs::path file = folder.path / kReserveName;
  const auto held = [&] {
    struct stat found {};
    return ::stat(file.c_str(), &found) == 0 ? std::int64_t{found.st_blocks} * 512 : -1;
  };
  {
    DiskReserve reserve(folder.path);
    const auto free = static_cast<std::int64_t>(fs::space(folder.path).available);
    reserve.keep(free / 2);
    EXPECT_FALSE(reserve.await());
    EXPECT_EQ(held(), -1);
    reserve.keep(3 << 20);
    if (!reserve.await()) GTEST_SKIP() << "this file system keeps no room";
    EXPECT_GE(held(), 3 << 20);
    reserve.release();
    EXPECT_EQ(held(), -1);
    reserve.keep(1 << 20);
    reserve.release();  // while it may still be made
    EXPECT_EQ(held(), -1);
    reserve.keep(1 << 20);
    EXPECT_TRUE(reserve.await());
    EXPECT_GE(held(), 1 << 20);
  }
  EXPECT_EQ(held(), -1) << "a run that ends leaves nothing";
  std::ofstream(file) << "of a run that was killed";
  remove_leftovers(folder.path);
  EXPECT_EQ(held(), -1);
}

/// A rank that cannot write: the others' files go away, and the last checkpoint stays.
TEST(CheckpointWriter, ARankWithoutRoomCostsThatCheckpointOnly) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path, 1).problems.empty());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64, 64};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const CheckpointEnd end = save(folder.path, 2);
    const bool told = !end.problems.empty() &&
                      to_string(end.problems[0]).find("File too large") != std::string::npos &&
                      to_string(end.problems[0]).find("rank_0000") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names(folder.path), ElementsAre("global_step_1"));
  EXPECT_FALSE(fs::exists(partial_path(folder.path, 2)));
  EXPECT_TRUE(save(folder.path, 3).problems.empty());
}

/// Who resumes from a step finds its records: the checkpoint comes after them.
TEST(CheckpointWriter, ACheckpointAppearsOnceItsStepIsRecorded) {
  const TemporaryFolder folder;
  const RankState state(0, 5);
  CheckpointWriter writer(folder.path, 0, 1, {});
  writer.begin(manifest_of(5), state.tensors(0));
  EXPECT_TRUE(writer.await_own().empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(fs::exists(checkpoint_path(folder.path, 5))) << "its records are not written yet";
  writer.recorded();
  for (int i = 0; i < 1000 && !fs::exists(checkpoint_path(folder.path, 5)); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(fs::exists(checkpoint_path(folder.path, 5)));
  writer.settle(/*all_written=*/true);
  EXPECT_TRUE(writer.take_ends().at(0).problems.empty());
}

TEST(CheckpointWriter, ANoteWithoutWordsIsLookedAtAgain) {
  const TemporaryFolder folder;
  const RankState state(0, 5);
  CheckpointWriter writer(folder.path, 0, kRanks, {});
  writer.begin(manifest_of(5), state.tensors(0));
  EXPECT_TRUE(writer.await_own().empty());
  std::ofstream note(partial_path(folder.path, 5) / (rank_file_name(1) + ".failed"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  note << "no space left" << std::flush;
  writer.settle(/*all_written=*/false);
  const std::vector<CheckpointEnd> ends = writer.take_ends();
  ASSERT_EQ(ends.size(), 1u);
  ASSERT_EQ(ends[0].problems.size(), 1u);
  EXPECT_EQ(ends[0].problems[0].place, "rank 1");
  EXPECT_EQ(ends[0].problems[0].found, "no space left");
}

TEST(CheckpointWriter, ARankThatNeverWritesIsNamedOnceTheRunGivesUp) {
  const TemporaryFolder folder;
  const RankState state(0, 5);
  CheckpointWriter writer(folder.path, 0, kRanks, {});
  writer.begin(manifest_of(5), state.tensors(0));
  EXPECT_TRUE(writer.await_own().empty());
  writer.settle(/*all_written=*/false);
  const auto ends = writer.take_ends();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_THAT(to_string(ends[0].problems.at(0)), HasSubstr("the file of rank 1"));
  EXPECT_TRUE(names(folder.path).empty());
}

TEST(PieceName, ReadsBackAndRefusesWhatIsNone) {
  const Box box{.dims = {Interval{0, 7}, Interval{16, 32}}, .rank = 2};
  const std::string name = piece_name("actor.exp_avg/model.norm.weight", box);
  EXPECT_EQ(name, "actor.exp_avg/model.norm.weight[0:7,16:32]");
  EXPECT_EQ(parse_piece_name(name)->state, "actor.exp_avg/model.norm.weight");
  EXPECT_EQ(parse_piece_name(name)->box, box);
  for (const char* none : {"generator.cpu", "w[", "w[1:2", "w[2:1]", "w[1:2,]", "w[1:2 ]", "w[a:2]",
                           "w[-1:2]", "w[0:1,0:1,0:1,0:1,0:1,0:1]"}) {
    EXPECT_FALSE(parse_piece_name(none)) << none;
  }
}

}  // namespace
}  // namespace tessera
