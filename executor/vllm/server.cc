#include "executor/vllm/server.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Versions whose routes and layouts are the ones that this folder is written for.
constexpr std::array<std::string_view, 1> kVersions = {"0.24."};
constexpr double kProbeSeconds = 5;

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

}  // namespace

std::vector<std::string> serve_words(const VllmServerSetting& setting, int port) {
  std::vector<std::string> words = {"serve",
                                    setting.model,
                                    "--host",
                                    "127.0.0.1",
                                    "--port",
                                    std::to_string(port),
                                    "--load-format",
                                    "dummy",
                                    "--skip-tokenizer-init",
                                    "--generation-config",
                                    "vllm",
                                    "--dtype",
                                    setting.dtype,
                                    "--tensor-parallel-size",
                                    std::to_string(setting.tp),
                                    "--max-model-len",
                                    std::to_string(setting.max_model_len),
                                    "--max-num-seqs",
                                    std::to_string(setting.max_num_seqs),
                                    "--gpu-memory-utilization",
                                    number(setting.gpu_memory_utilization),
                                    "--logprobs-mode",
                                    setting.logprobs_mode,
                                    "--worker-extension-cls",
                                    "tessera_vllm.worker.WeightReceiver",
                                    "--middleware",
                                    "tessera_vllm.serve.Generate",
                                    "--scheduler-cls",
                                    "tessera_vllm.scheduler.make_scheduler",
                                    "--disable-uvicorn-access-log",
                                    "--disable-log-stats"};  // a loop over all samples, every step
  if (setting.max_num_batched_tokens > 0) {
    words.insert(words.end(),
                 {"--max-num-batched-tokens", std::to_string(setting.max_num_batched_tokens)});
  }
  if (setting.sleeps) words.emplace_back("--enable-sleep-mode");
  if (setting.enforce_eager) words.emplace_back("--enforce-eager");
  words.emplace_back(setting.enable_prefix_caching ? "--enable-prefix-caching"
                                                   : "--no-enable-prefix-caching");
  words.insert(words.end(), setting.arguments.begin(), setting.arguments.end());
  return words;
}

VllmServer::VllmServer(const VllmServerSetting& setting) : log_(setting.log) {
  const int port = free_port();
  address_ = "http://127.0.0.1:" + std::to_string(port);
  connection_ = std::make_unique<HttpConnection>(address_);
  std::vector<std::string> words = setting.program;
  for (std::string& word : serve_words(setting, port)) words.push_back(std::move(word));
  std::map<std::string, std::string> added = {{"VLLM_SERVER_DEV_MODE", "1"}};
  if (!setting.devices.empty()) added["CUDA_VISIBLE_DEVICES"] = setting.devices;
  process_.start({.words = std::move(words), .added = std::move(added), .log = log_});
  pid_ = process_.pid();
}

VllmServer::VllmServer(const std::string& address)
    : address_(address), connection_(std::make_unique<HttpConnection>(address)) {}

void VllmServer::await_ready(double timeout_s) {
  const auto until = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (;;) {
    if (!ended().empty()) fail("start", "ended before it was ready");
    const HttpReply reply = connection_->get("/health", kProbeSeconds);
    if (reply.ok()) break;
    if (Clock::now() >= until) {
      fail("GET /health", in_words(reply) + ", " + number(timeout_s) + " s after it was asked",
           /*lost=*/true);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  check_version();
}

void VllmServer::check_version() {
  const HttpReply reply = connection_->get("/version", kProbeSeconds);
  if (!reply.ok()) fail("GET /version", reply, kProbeSeconds);
  const json body = json::parse(reply.body, nullptr, false);
  const bool told = body.is_object() && body.contains("version") && body["version"].is_string();
  const std::string version = told ? body["version"].get<std::string>() : "of no version";
  if (std::none_of(kVersions.begin(), kVersions.end(),
                   [&](std::string_view known) { return version.starts_with(known); })) {
    fail("GET /version", "is " + version + "; this version of tessera drives 0.24");
  }
}

std::string VllmServer::post(const std::string& path, const std::string& body, double timeout_s) {
  HttpReply reply = connection_->post(path, body, timeout_s);
  if (!reply.ok()) fail("POST " + path, reply, timeout_s);
  return std::move(reply.body);
}

WorkerReplies VllmServer::call_workers(const std::string& method,
                                       const std::vector<std::string>& arguments,
                                       double timeout_s) {
  const json body{{"method", method}, {"args", arguments}};
  const std::string text = post("/collective_rpc", body.dump(), timeout_s);
  const json reply = json::parse(text, nullptr, false);
  if (!reply.is_object() || !reply.contains("results") || !reply["results"].is_array()) {
    fail("the workers' " + method, "answered " + text.substr(0, 400));
  }
  WorkerReplies replies;
  for (const json& one : reply["results"]) {
    if (!one.is_object()) fail("the workers' " + method, "answered " + one.dump());
    if (one.contains("error")) {
      fail("the workers' " + method,
           "failed on worker " + std::to_string(replies.size()) + ": " + one["error"].dump());
    }
    replies.push_back(one.dump());
  }
  return replies;
}

std::string VllmServer::generate(HttpConnection& connection, const std::string& body,
                                 double timeout_s) {
  HttpReply reply = connection.post("/tessera/generate", body, timeout_s);
  if (!reply.ok()) fail("POST /tessera/generate", reply, timeout_s);
  return std::move(reply.body);
}

std::string VllmServer::ended() {
  const std::scoped_lock lock(process_lock_);
  return process_.ended();
}

void VllmServer::stop() {
  constexpr double kPatienceSeconds = 2;  // nothing that it still does is of use
  const std::scoped_lock lock(process_lock_);
  process_.stop(kPatienceSeconds);
}

void VllmServer::fail(const std::string& call, const HttpReply& reply, double timeout_s) {
  constexpr int kBroken = 500;
  const std::string how = reply.fault == HttpFault::timed_out
                              ? "no answer for " + number(timeout_s) + " s"
                              : in_words(reply);
  fail(call, how, reply.fault != HttpFault::none || reply.status >= kBroken);
}

/// A connection breaks a moment before the process can be waited for.
void VllmServer::fail(const std::string& call, const std::string& how, bool lost) {
  std::string ended = this->ended();
  for (int i = 0; pid_ > 0 && ended.empty() && i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ended = this->ended();
  }
  std::string text = "vLLM at " + address_;
  if (pid_ > 0) text += " (pid " + std::to_string(pid_) + ")";
  text += ": " + call + ": " + how;
  if (!ended.empty()) text += "; its process has ended with " + ended;
  if (pid_ > 0) text += "; " + log_.string() + " ends:" + process_.last_lines();
  if (lost || !ended.empty()) throw ServerLost(ExitCode::missing, text);
  throw Error(ExitCode::missing, text);
}

}  // namespace tessera
