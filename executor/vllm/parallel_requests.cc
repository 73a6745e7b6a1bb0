#include "executor/vllm/parallel_requests.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "executor/vllm/requests/generate_call.h"

namespace tessera {
namespace {

constexpr std::size_t kMostConnections = 512;

struct Request {
  const TokenPrompt* prompt = nullptr;
  std::vector<Sequence>* answer = nullptr;
};

/// The requests that are left, and the first failure; shared by the threads of one call.
class Pool {
 public:
  explicit Pool(std::vector<Request>& requests) : requests_(requests) {}

  /// The next request; nullptr: none is left, or something failed.
  Request* take() {
    const std::scoped_lock lock(mutex_);
    if (failure_ || next_ == requests_.size()) return nullptr;
    return &requests_[next_++];
  }
  void fail(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }
  void thread_ended() {
    const std::scoped_lock lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
  /// Waits for the first failure, or for the end of all threads.
  std::exception_ptr await(std::size_t threads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || ended_ == threads; });
    return failure_;
  }

 private:
  std::vector<Request>& requests_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0, ended_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void answer_in_parallel(VllmServer& server, std::int64_t step, std::span<const TokenPrompt> prompts,
                        const RolloutOptions& options, std::int64_t vocabulary, double timeout_s,
                        std::span<std::vector<Sequence>> answers) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].samples > 0 && answers[i].empty())
      requests.push_back({&prompts[i], &answers[i]});
  }
  if (requests.empty()) return;
  Pool pool(requests);
  const auto work = [&] {
    try {
      HttpConnection connection(server.address());
      while (Request* request = pool.take()) {
        const std::string body = generate_body(step, *request->prompt, options);
        *request->answer = read_samples_of(server.generate(connection, body, timeout_s),
                                           *request->prompt, options, vocabulary);
      }
    } catch (...) {
      pool.fail(std::current_exception());
    }
    pool.thread_ended();
  };
  std::vector<std::thread> threads(std::min(requests.size(), kMostConnections));
  for (std::thread& thread : threads) thread = std::thread(work);
  const std::exception_ptr failure = pool.await(threads.size());
  if (failure) server.stop();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tessera
