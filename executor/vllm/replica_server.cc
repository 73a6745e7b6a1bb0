#include "executor/vllm/replica_server.h"

#include <utility>

namespace tessera {

ReplicaServer::ReplicaServer(VllmServerSetting setting, double start_timeout_s,
                             std::int64_t restarts, int replica)
    : setting_(std::move(setting)),
      start_timeout_s_(start_timeout_s),
      left_(restarts),
      replica_(replica),
      server_(std::make_unique<VllmServer>(setting_)) {}

ReplicaServer::ReplicaServer(const std::string& address, double start_timeout_s, int replica)
    : start_timeout_s_(start_timeout_s),
      replica_(replica),
      server_(std::make_unique<VllmServer>(address)) {}

void ReplicaServer::start_anew() {
  ++started_;
  --left_;
  VllmServerSetting setting = setting_;
  setting.log.replace_filename(setting_.log.stem().string() + "." + std::to_string(started_) +
                               setting_.log.extension().string());
  server_ = std::make_unique<VllmServer>(setting);
  server_->await_ready(start_timeout_s_);
}

std::string ReplicaServer::in_words(std::string_view phase, const Error& error) const {
  std::string text = "replica " + std::to_string(replica_) + " of the rollout, ";
  text += step_ == 0 ? "before the first step" : "step " + std::to_string(step_);
  return text + ", phase " + std::string(phase) + ": " + error.what();
}

void ReplicaServer::call(std::string_view phase, const std::function<void()>& call,
                         const std::function<void()>& restore) {
  std::string lost;
  for (bool fresh = false;; fresh = true) {
    try {
      if (fresh) {
        start_anew();
        restore();
        news_.push_back("[Servers] another one was started at " + server_->address() + ", " +
                        std::to_string(left_) + " more may be");
      }
      return call();
    } catch (const ServerLost& error) {
      server_->stop();  // its memory is free, whatever still runs of it
      lost += (lost.empty() ? "" : "; ") + in_words(phase, error);
      news_.push_back("[Servers] " + in_words(phase, error));
    } catch (const Error& error) {
      throw Error(error.code(), lost + (lost.empty() ? "" : "; ") + in_words(phase, error));
    }
    if (!restore || left_ == 0) throw ServerLost(ExitCode::missing, lost);
  }
}

std::vector<std::string> ReplicaServer::take_news() { return std::exchange(news_, {}); }

}  // namespace tessera
