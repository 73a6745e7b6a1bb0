// One vLLM server: started as a child process, or joined where it runs; and the calls that it gets.
//
// A call that fails throws Error(missing) which names the server, the call and how it failed, and
// of a server that was started its process, how that has ended and the last lines of its log;
// ServerLost, where another server in its place may do better. Routes as vLLM 0.24.0 has them with
// VLLM_SERVER_DEV_MODE=1: entrypoints/serve/dev (sleep, rpc, cache), instrumentator (health,
// version); generate is the package's own. One thread, but for generate().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/http/http.h"
#include "executor/vllm/server_process.h"

namespace tessera {

/// What the plan and the run file say of one server.
struct VllmServerSetting {
  std::string model;    // folder with config.json; its weights are not read
  std::string devices;  // CUDA_VISIBLE_DEVICES; empty = as they are
  std::string dtype;    // of the weights, as the trainer keeps them
  std::string logprobs_mode;
  int tp = 1;
  std::int64_t max_model_len = 0, max_num_seqs = 0;
  std::int64_t max_num_batched_tokens = 0;  // 0 = vLLM's own
  double gpu_memory_utilization = 0.5;
  bool enforce_eager = false, enable_prefix_caching = true, sleeps = true;
  std::vector<std::string> program, arguments;
  std::filesystem::path log;
};

/// The words of `vllm serve`, without its program.
std::vector<std::string> serve_words(const VllmServerSetting& setting, int port);

/// A server that has ended, does not answer, or has broken inside.
class ServerLost : public Error {
 public:
  using Error::Error;
};

/// What a worker's part of a call answered: JSON.
using WorkerReplies = std::vector<std::string>;

class VllmServer {
 public:
  /// Starts a server on a free port of 127.0.0.1. It may take minutes until it is ready.
  explicit VllmServer(const VllmServerSetting& setting);
  /// Joins the server at `address`.
  explicit VllmServer(const std::string& address);

  const std::string& address() const { return address_; }

  /// Waits until it is healthy and of a version that is known.
  void await_ready(double timeout_s);
  void sleep(double timeout_s) { post("/sleep?level=2", "", timeout_s); }
  void wake(const std::string& tag, double timeout_s) {
    post("/wake_up?tags=" + tag, "", timeout_s);
  }
  void reset_prefix_cache(double timeout_s) { post("/reset_prefix_cache", "", timeout_s); }
  /// Calls a method of every worker's extension; its replies by worker. A reply with the key
  /// `error` is a failure of the call.
  WorkerReplies call_workers(const std::string& method, const std::vector<std::string>& arguments,
                             double timeout_s);
  /// The reply to POST /tessera/generate, over the caller's connection.
  std::string generate(HttpConnection& connection, const std::string& body, double timeout_s);

  /// Empty while its process runs; always so of a server that was joined.
  std::string ended();
  /// Ends its process; nothing to one that was joined.
  void stop();

 private:
  std::string post(const std::string& path, const std::string& body, double timeout_s);
  void check_version();
  /// `lost`: even where its process runs.
  [[noreturn]] void fail(const std::string& call, const std::string& how, bool lost = false);
  [[noreturn]] void fail(const std::string& call, const HttpReply& reply, double timeout_s);

  std::string address_;
  std::filesystem::path log_;
  ServerProcess process_;
  pid_t pid_ = -1;           // of its process, also when it has ended; -1 = joined
  std::mutex process_lock_;  // threads that generate look at it when a request fails
  std::unique_ptr<HttpConnection> connection_;
};

}  // namespace tessera
