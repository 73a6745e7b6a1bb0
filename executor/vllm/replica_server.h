// A replica's vLLM server through its losses: where it ends, hangs or breaks, another one is
// started in its place and brought to where it was.
//
// Owned by the rank that speaks for the replica. One thread, whose end ends the servers that it
// has started.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/vllm/server.h"

namespace tessera {

class ReplicaServer {
 public:
  /// Starts a server, and in the whole run at most `restarts` in its place. What those write goes
  /// to logs beside the first one's: vllm-0.1.log.
  ReplicaServer(VllmServerSetting setting, double start_timeout_s, std::int64_t restarts,
                int replica);
  /// Joins the one at `address`, which nothing can take the place of.
  ReplicaServer(const std::string& address, double start_timeout_s, int replica);

  VllmServer& now() { return *server_; }
  /// The step that failures name from here on; 0 = none has begun.
  void at_step(std::int64_t step) { step_ = step; }
  /// Makes a call to the server, of the phase that failures name. Where the server is lost in it
  /// another is started, `restore` brings it to where the lost one was, and the call is made anew;
  /// without `restore` none is started. Throws ServerLost with what became of each server that was
  /// lost in the call, and whatever else the calls throw, with replica, step and phase.
  void call(std::string_view phase, const std::function<void()>& call,
            const std::function<void()>& restore);
  /// Lines of the servers that were started in others' places since the last call.
  std::vector<std::string> take_news();

 private:
  void start_anew();
  std::string in_words(std::string_view phase, const Error& error) const;

  VllmServerSetting setting_;
  double start_timeout_s_;
  std::int64_t left_ = 0, started_ = 0;  // in another's place
  int replica_;
  std::int64_t step_ = 0;
  std::unique_ptr<VllmServer> server_;
  std::vector<std::string> news_;
};

}  // namespace tessera
