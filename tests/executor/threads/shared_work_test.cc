// Every item once, by as many threads as asked for, and no failure lost.
#include "executor/threads/shared_work.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tessera {
namespace {

TEST(SharedWork, DoesEveryItemOnce) {
  for (const int threads : {1, 2, 7}) {
    for (const std::int64_t count : {0, 1, 6, 7, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      share_work(count, 7, threads, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LE(end - begin, 7);
        for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
      });
      for (const std::atomic<int>& each : done) EXPECT_EQ(each, 1);
    }
  }
}

TEST(SharedWork, RunsOnAsManyThreadsAtOnce) {
  std::barrier all(4);  // nobody passes alone
  std::set<std::thread::id> seen;
  std::mutex guard;
  share_work(4, 1, 4, [&](std::int64_t, std::int64_t) {
    all.arrive_and_wait();
    const std::lock_guard lock(guard);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(SharedWork, ThrowsWhatAPartThrewAndStops) {
  std::atomic<int> begun = 0;
  EXPECT_THROW(share_work(1'000'000, 1, 3,
                          [&](std::int64_t, std::int64_t) {
                            ++begun;
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  EXPECT_LE(begun, 3);
}

/// A thread is refused when its stack does not fit the addresses that a process has. (A limit of
/// addresses would refuse what a sanitizer maps for itself, too.)
TEST(SharedWork, IsDoneWhereTheSystemGivesNoThreads) {
  const pid_t child = ::fork();
  if (child == 0) {
    pthread_attr_t unfit;
    ::pthread_attr_init(&unfit);
    ::pthread_attr_setstacksize(&unfit, std::size_t{1} << 60);
    if (::pthread_setattr_default_np(&unfit) != 0) ::_exit(3);
    std::atomic<int> done = 0;
    try {
      share_work(64, 1, 64, [&](std::int64_t, std::int64_t) { ++done; });
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(done == 64 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

}  // namespace
}  // namespace tessera
