#include "executor/rewards/sandbox_service.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/http/http.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kServiceTime = 10;  // seconds that verl allows the service beside the code's own
constexpr std::array kBusy = {429, 502, 503, 504};

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

bool may_be_busy(const HttpReply& reply) {
  if (reply.fault != HttpFault::none) {
    return reply.fault == HttpFault::refused || reply.fault == HttpFault::closed;
  }
  return std::ranges::find(kBusy, reply.status) != kBusy.end();
}

void give(RewardAnswer& answer, double score) {
  answer.score = score;
  answer.detail.plain_number = true;  // as verl's default_compute_score passes it on
}

}  // namespace

double request_timeout_s(const SandboxLimits& limits) {
  return 2 * limits.timeout_s + kServiceTime;
}

void check_service(const SandboxService& service, const std::string& run_file, Problems& problems) {
  HttpConnection connection(service.server);
  const HttpReply reply = connection.get("/v1/ping", kServiceTime);
  if (reply.fault == HttpFault::none) return;
  problems.push_back({.file = run_file,
                      .place = "reward.sandbox_fusion.url",
                      .found = service.server + ", which " + in_words(reply),
                      .expected = "a sandbox service that runs"});
}

/// Connections, their threads, and the requests that wait. Everything behind the mutex.
class SandboxScorer::Lanes {
 public:
  Lanes(SandboxService service, int connections) : service_(std::move(service)) {
    for (int i = 0; i < connections; ++i) {
      lanes_.push_back(std::make_unique<Lane>(service_.server));
    }
    for (const auto& lane : lanes_) {
      lane->thread =
          std::jthread([this, &lane](const std::stop_token& stop) { work(*lane, stop); });
    }
  }

  ~Lanes() {
    for (const auto& lane : lanes_) lane->thread.request_stop();
    {
      const std::lock_guard lock(mutex_);
      waiting_.clear();
    }
    work_.notify_all();
    for (const auto& lane : lanes_) lane->connection.stop();
  }

  void submit(const RewardRequest& request) {
    const std::lock_guard lock(mutex_);
    const std::size_t index = responses_.size();
    Response& response = responses_.emplace_back();
    const std::optional<std::string> code = code_of(request.response);
    if (!code) {
      give(response.answer, 0);
      return settle();
    }
    auto cases = cases_of(*code, request.truth_json, response.answer.failure);
    if (!cases) return settle();
    response.answer.failure.clear();
    response.cases = *std::move(cases);
    response.results.resize(response.cases.size(), CaseResult::broken);
    response.open = response.cases.size();
    for (std::size_t i = 0; i < response.cases.size(); ++i) waiting_.push_back({index, i});
    work_.notify_all();
  }

  std::size_t answered() {
    const std::lock_guard lock(mutex_);
    return answered_;
  }

  /// Ends requests that are past their time: a service may send a byte now and then for ever.
  void end_late() {
    const std::lock_guard lock(mutex_);
    for (const auto& lane : lanes_) {
      if (lane->deadline && Clock::now() > *lane->deadline) lane->connection.stop();
    }
  }

  bool wait(std::chrono::milliseconds most) {
    const Clock::time_point until = Clock::now() + most;
    const auto all = [&] { return answered_ == responses_.size(); };
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, std::min(most, std::chrono::milliseconds(50)), all)) {
      if (Clock::now() >= until) return false;
      lock.unlock();
      end_late();
      lock.lock();
    }
    return true;
  }

  std::vector<RewardAnswer> finish() {
    while (!wait(std::chrono::minutes(1))) {
    }
    const std::lock_guard lock(mutex_);
    std::vector<RewardAnswer> answers;
    for (Response& response : responses_) answers.push_back(std::move(response.answer));
    responses_.clear();
    answered_ = 0;
    return answers;
  }

 private:
  struct Response {
    std::vector<SandboxCase> cases;
    std::vector<CaseResult> results;
    std::size_t open = 0;  // cases without a result
    RewardAnswer answer;
  };
  struct Job {
    std::size_t response = 0, number = 0;
  };
  struct Lane {
    explicit Lane(const std::string& server) : connection(server) {}
    HttpConnection connection;
    std::optional<Clock::time_point> deadline;  // of the request that is on its way
    std::jthread thread;
  };

  void settle() {
    ++answered_;
    done_.notify_all();
  }

  void work(Lane& lane, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, stop, [&] { return !waiting_.empty(); });
      if (stop.stop_requested()) return;
      const Job job = waiting_.front();
      waiting_.pop_front();
      Response& response = responses_[job.response];
      std::string failure;
      CaseResult result = CaseResult::broken;
      if (response.answer.failure.empty()) {  // else it has no score, whatever this case says
        const SandboxCase one = response.cases[job.number];
        lock.unlock();
        result = ask(lane, one, stop, failure);
        lock.lock();
      }
      take(responses_[job.response], job.number, result, std::move(failure));
    }
  }

  void take(Response& response, std::size_t number, CaseResult result, std::string failure) {
    response.results[number] = result;
    if (result == CaseResult::broken && response.answer.failure.empty()) {
      response.answer.failure = std::move(failure);
    }
    if (--response.open > 0) return;
    if (response.answer.failure.empty()) give(response.answer, score_of(response.results));
    settle();
  }

  /// Runs one case, where the service may be busy several times.
  CaseResult ask(Lane& lane, const SandboxCase& one, const std::stop_token& stop,
                 std::string& failure) {
    const std::string body = request_of(one, service_.limits);
    for (int tried = 1;; ++tried) {
      const HttpReply reply = post(lane, body);
      if (reply.ok()) {
        const CaseResult result = result_of(one, reply.body);
        if (result == CaseResult::broken) failure = "the service " + in_words(reply).substr(0, 160);
        return result;
      }
      failure = "the service " + in_words(reply).substr(0, 160);
      if (!may_be_busy(reply) || tried >= service_.tries) return CaseResult::broken;
      std::unique_lock lock(mutex_);
      work_.wait_for(lock, stop, seconds(tried * service_.retry_delay_s), [] { return false; });
      if (stop.stop_requested()) return CaseResult::broken;
    }
  }

  HttpReply post(Lane& lane, const std::string& body) {
    const double limit = request_timeout_s(service_.limits);
    const Clock::time_point deadline = Clock::now() + seconds(limit);
    const auto set = [&](std::optional<Clock::time_point> until) {
      const std::lock_guard lock(mutex_);
      lane.deadline = until;
    };
    set(deadline);
    HttpReply reply = lane.connection.post(service_.path, body, limit, service_.largest_reply);
    set(std::nullopt);
    // What was ended because it was late looks like a connection that was closed.
    if (reply.fault == HttpFault::closed && Clock::now() >= deadline) {
      reply.fault = HttpFault::timed_out;
    }
    return reply;
  }

  SandboxService service_;
  std::mutex mutex_;
  std::condition_variable_any work_, done_;
  std::deque<Response> responses_;  // since the last finish()
  std::deque<Job> waiting_;
  std::size_t answered_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;  // last: its threads use what is above
};

SandboxScorer::SandboxScorer(SandboxService service, int connections)
    : lanes_(std::make_unique<Lanes>(std::move(service), connections)) {}
SandboxScorer::~SandboxScorer() = default;

void SandboxScorer::submit(RewardRequest request) { lanes_->submit(request); }
void SandboxScorer::poll() { lanes_->end_late(); }
std::size_t SandboxScorer::answered() const { return lanes_->answered(); }
bool SandboxScorer::wait(std::chrono::milliseconds most) { return lanes_->wait(most); }
std::vector<RewardAnswer> SandboxScorer::finish() { return lanes_->finish(); }

}  // namespace tessera
