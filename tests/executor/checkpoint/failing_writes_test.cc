// Every call by which a checkpoint reaches the disk fails once, in every way: the checkpoint before
// it stays as it was, what went wrong is told, and the next one is written.
//
// This program's own pwrite, fsync and rename stand before the C library's and fail where a test
// says.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>

#include "cost_models/documents/problem.h"
#include "tests/executor/checkpoint/two_ranks.h"
#include "tests/executor/temporary_folder.h"

namespace {

enum class Call : int { write, fsync, rename };
enum class Fault : int { none, error, short_write };

struct Plan {
  std::atomic<Fault> fault = Fault::none;
  std::atomic<Call> call = Call::write;
  std::atomic<int> at = -1;  // the call of this number, from 0
  std::atomic<int> code = 0;
  std::array<std::atomic<int>, 3> seen{};
  std::atomic<int> headers = 0;  // writes at the beginning of a file
  std::atomic<bool> counts = false;
} plan;

/// Whether the call of this kind is the one that fails.
bool fails(Call call) {
  if (!plan.counts) return false;
  const int number = plan.seen[static_cast<std::size_t>(call)]++;
  return plan.fault != Fault::none && plan.call == call && number == plan.at;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (plan.counts && at == 0) ++plan.headers;
  if (!fails(Call::write)) return real(descriptor, bytes, size, at);
  if (plan.fault == Fault::short_write) return real(descriptor, bytes, size / 2 + 1, at);
  errno = plan.code;
  return -1;
}

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (!fails(Call::fsync)) return real(descriptor);
  errno = plan.code;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if (!fails(Call::rename)) return real(from, to);
  errno = plan.code;
  return -1;
}

}  // extern "C"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The numbers of both ranks, read with their digests; nothing where anything is wrong.
bool loads(const fs::path& checkpoints, std::int64_t step) {
  Problems problems;
  const auto open = open_checkpoint(checkpoint_path(checkpoints, step), problems);
  if (!open) return false;
  std::int64_t row = 0;
  for (const SavedPiece& piece : open->pieces.at("actor.master/w")) {
    if (piece.box.dims[0].lo != row || !check_digest(*piece.view, piece.digest, problems)) {
      return false;
    }
    const RankState wanted(static_cast<int>(row / kRows), step);
    const float* const values = wanted.values.data() + 2 * (row % kRows);
    if (std::memcmp(piece.view->data.data(), values, piece.view->data.size()) != 0) return false;
    row = piece.box.dims[0].hi;
  }
  return row == std::int64_t{kRanks} * kRows && problems.empty();
}

/// Saves step 2 while that call fails; how many calls of the kind there were.
int save_with(const fs::path& folder, Pieces pieces, Call call, int at, Fault fault, int code,
              CheckpointEnd& end) {
  plan.fault = fault;
  plan.call = call;
  plan.at = at;
  plan.code = code;
  for (auto& seen : plan.seen) seen = 0;
  plan.headers = 0;
  plan.counts = true;
  end = save(folder, 2, 0, {}, pieces);
  plan.counts = false;
  plan.fault = Fault::none;
  return plan.seen[static_cast<std::size_t>(call)];
}

struct Case {
  const char* name;
  Call call;
  Fault fault;
  int code;
  bool harmless;  // it is tried again, and nothing is lost
};

class FailingCall : public testing::TestWithParam<std::tuple<Case, Pieces>> {};

TEST_P(FailingCall, CostsOneCheckpointAtMost) {
  const auto [name, call, fault, code, harmless] = std::get<Case>(GetParam());
  const Pieces pieces = std::get<Pieces>(GetParam());
  CheckpointEnd whole;
  const TemporaryFolder untouched;
  const int calls = save_with(untouched.path, pieces, call, -1, Fault::none, 0, whole);
  ASSERT_TRUE(whole.problems.empty());
  EXPECT_GT(calls, 1) << "the calls are seen";
  EXPECT_EQ(plan.headers, static_cast<int>(files_of(pieces).size()) + 1)
      << "every file's header, which comes after its data, and the manifest";
  int told = 0;
  for (int at = 0; at < calls; ++at) {
    const TemporaryFolder folder;
    ASSERT_TRUE(save(folder.path, 1, 0, {}, pieces).problems.empty());
    CheckpointEnd end;
    save_with(folder.path, pieces, call, at, fault, code, end);
    EXPECT_TRUE(loads(folder.path, 1)) << name << " at call " << at;
    EXPECT_TRUE(!harmless || end.problems.empty()) << name << " at call " << at;
    if (end.problems.empty()) {
      EXPECT_TRUE(loads(folder.path, 2)) << name << " at call " << at;
    } else {
      ++told;
      const std::string words = to_string(end.problems.front());
      EXPECT_THAT(words, HasSubstr(std::strerror(code))) << at;
      EXPECT_THAT(words, HasSubstr(folder.path.string())) << at;
    }
    ASSERT_TRUE(save(folder.path, 3, 0, {}, pieces).problems.empty()) << name << " at call " << at;
    EXPECT_TRUE(loads(folder.path, 3));
    remove_leftovers(folder.path);
    for (const auto& entry : fs::recursive_directory_iterator(folder.path)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
  }
  EXPECT_EQ(told, harmless ? 0 : calls) << "no failure is passed over";
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FailingCall,
    testing::Combine(testing::Values(Case{"full", Call::write, Fault::error, ENOSPC, false},
                                     Case{"broken", Call::write, Fault::error, EIO, false},
                                     Case{"interrupted", Call::write, Fault::error, EINTR, true},
                                     Case{"short_write", Call::write, Fault::short_write, 0, true},
                                     Case{"flush", Call::fsync, Fault::error, EIO, false},
                                     Case{"name", Call::rename, Fault::error, EIO, false}),
                     testing::Values(Pieces::whole, Pieces::rows)),
    [](const auto& info) {
      const bool rows = std::get<Pieces>(info.param) == Pieces::rows;
      return std::get<Case>(info.param).name + std::string(rows ? "_of_parts" : "");
    });

}  // namespace
}  // namespace tessera
