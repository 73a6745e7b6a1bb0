#include "executor/threads/shared_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tessera {

void share_work(std::int64_t count, std::int64_t chunk, int threads,
                const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;  // of `failure`
  const auto take = [&] {
    for (std::int64_t begin = next.fetch_add(chunk); begin < count; begin = next.fetch_add(chunk)) {
      try {
        work(begin, std::min(begin + chunk, count));
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::int64_t useful = std::min<std::int64_t>(threads, (count + chunk - 1) / chunk);
    try {
      for (std::int64_t i = 1; i < useful; ++i) helpers.emplace_back(take);
    } catch (const std::system_error&) {  // no more threads to be had: those that there are do it
    }
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tessera
