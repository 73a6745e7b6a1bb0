#include "executor/vllm/vllm_rollout.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/stopwatch.h"
#include "executor/rl/experience.h"
#include "executor/vllm/parallel_requests.h"
#include "executor/vllm/requests/generate_call.h"

namespace tessera {
namespace {

/// vLLM's --dtype.
std::string vllm_dtype(DType type) {
  switch (type) {
    case DType::fp32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    default:
      throw Error(ExitCode::bad_input, "vLLM takes weights in fp32, bf16 or fp16");
  }
}

/// Waits of ranks for one another end with the run: what is awaited has time limits of its own.
constexpr double kPatienceSeconds = 7 * 86400;
/// HostSignals' slot of on_speaker; the barrier has slot 0.
constexpr int kCallSlot = 1;

int replica_of(const RankCoord& coord, const ParallelLayout& layout) {
  return coord.dp_replicate * layout.dp_shard + coord.dp_shard;
}

RankCoord worker_coord(int replica, int tp_rank, const ParallelLayout& layout) {
  return {.tp = tp_rank,
          .dp_replicate = replica / layout.dp_shard,
          .dp_shard = replica % layout.dp_shard};
}

/// Every worker's bytes, which it counts as it takes them.
void check_moved(const WorkerReplies& replies, std::span<const VllmWorkerSlices> workers) {
  for (std::size_t i = 0; i < replies.size() && i < workers.size(); ++i) {
    const auto reply = nlohmann::json::parse(replies[i], nullptr, false);
    const std::int64_t moved = reply.is_object() ? reply.value("bytes", std::int64_t{-1}) : -1;
    if (moved == workers[i].bytes) continue;
    throw Error(ExitCode::check_failed, "vLLM's worker " + std::to_string(i) + " has taken " +
                                            std::to_string(moved) + " bytes of weights, expected " +
                                            std::to_string(workers[i].bytes));
  }
}

/// What the workers hold, with the memory that they map.
void compare_mapped(VllmServer& server, double timeout_s) {
  try {
    server.call_workers("tessera_verify", {}, timeout_s);
  } catch (const ServerLost&) {
    throw;
  } catch (const Error& error) {
    throw Error(ExitCode::check_failed, error.what());
  }
}

}  // namespace

VllmRollout::VllmRollout(Communicator& host, VllmSetting setting, const VllmOptions& options)
    : host_(host),
      setting_(std::move(setting)),
      options_(options),
      signals_(host, kPatienceSeconds) {
  const std::vector<std::string> devices = texts_of_ranks(setting_.device);
  const int index = setting_.rollout.index_of(host_.rank());
  if (index >= 0) {
    const RankCoord& coord = setting_.rollout.coords[static_cast<std::size_t>(index)];
    replica_ = replica_of(coord, setting_.rollout.layout);
    speaker_ = setting_.rollout.rank_at(speaker_coord(replica_));
    if (speaker_ == host_.rank()) {
      server_ = make_server(devices);
    }
  }
  on_speaker("start", [&] { server_->now().await_ready(options_.start_timeout_s); });
  sleep();
  settle();
}

std::unique_ptr<ReplicaServer> VllmRollout::make_server(
    const std::vector<std::string>& devices) const {
  if (options_.servers.empty()) {
    return std::make_unique<ReplicaServer>(server_setting(devices), options_.start_timeout_s,
                                           options_.restarts, replica_);
  }
  return std::make_unique<ReplicaServer>(options_.servers.at(static_cast<std::size_t>(replica_)),
                                         options_.start_timeout_s, replica_);
}

RankCoord VllmRollout::speaker_coord(int replica) const {
  return worker_coord(replica, 0, setting_.rollout.layout);
}

void VllmRollout::on_speaker(std::string_view phase, const std::function<void()>& call) {
  if (replica_ < 0) return;
  ++calls_;
  if (!speaks()) return signals_.await(speaker_, kCallSlot, calls_);
  std::function<void()> restores;  // none before there are weights to bring
  if (!table_.empty()) restores = [this] { restore(); };
  try {
    if (!failure_) server_->call(phase, call, restores);
  } catch (const Error& error) {
    failure_ = error;
  } catch (...) {
    signals_.abort();
    throw;
  }
  signals_.raise(kCallSlot, calls_);
}

/// From a server that has just started to where the one before it was. What the trainer's memory
/// holds is final from before the weights move until all samples are there.
void VllmRollout::restore() {
  const Stage reached = std::exchange(stage_, Stage::asleep);
  fresh_ = true;
  if (held_ != nullptr) held_->forget();
  if (options_.sleeps) server_->now().sleep(options_.request_timeout_s);
  server_->now().call_workers("tessera_attach", {table_}, options_.start_timeout_s);
  try {
    advance_to(reached);
  } catch (...) {
    stage_ = reached;  // where the next one must come to
    throw;
  }
}

void VllmRollout::advance_to(Stage stage) {
  VllmServer& server = server_->now();
  if (stage_ < Stage::memory && stage >= Stage::memory) {
    if (options_.sleeps) server.wake("weights", options_.request_timeout_s);
    stage_ = Stage::memory;
  }
  if (stage_ < Stage::weights && stage >= Stage::weights) {
    check_moved(server.call_workers("tessera_update", {}, options_.request_timeout_s),
                own_workers());
    const bool maps = options_.transport == WeightTransport::mapped;
    if (maps && (setting_.verify || fresh_)) compare_mapped(server, options_.request_timeout_s);
    stage_ = Stage::weights;
    fresh_ = false;
  }
  if (stage_ < Stage::ready && stage >= Stage::ready) {
    options_.sleeps ? server.wake("kv_cache", options_.request_timeout_s)
                    : server.reset_prefix_cache(options_.request_timeout_s);
    stage_ = Stage::ready;
  }
}

void VllmRollout::settle() {
  meet();  // a server may take long to start anew
  std::string lines;
  if (speaks()) {
    for (const std::string& line : server_->take_news()) lines += line + "\n";
  }
  for (const std::string& news : texts_of_ranks(lines)) {
    unproven_ = unproven_ || !news.empty();
    std::istringstream text(news);
    for (std::string line; std::getline(text, line);) news_.push_back(line);
  }
  throw_failures();
}

/// What is wrong counts before what is lost. Collective.
void VllmRollout::throw_failures() {
  constexpr int kWrong = static_cast<int>(ExitCode::check_failed);
  const int mine = failure_ ? static_cast<int>(failure_->code()) : 0;
  std::vector<int> codes(static_cast<std::size_t>(host_.size()));
  host_.all_gather(&mine, codes.data(), 1, DType::int32);
  const auto failed = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
  if (failed == codes.end()) return;
  const bool wrong = std::find(codes.begin(), codes.end(), kWrong) != codes.end();
  const int code = wrong ? kWrong : *failed;
  std::string text;
  const std::vector<std::string> texts = texts_of_ranks(failure_ ? failure_->what() : "");
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (codes[rank] == code) text += (text.empty() ? "" : "; ") + texts[rank];
  }
  if (wrong) throw Error(ExitCode::check_failed, text);
  throw ServerLost(static_cast<ExitCode>(code), text);
}

std::vector<std::string> VllmRollout::texts_of_ranks(const std::string& mine) {
  const std::span<const char> text(mine);
  std::vector<std::string> texts;
  for (const std::vector<std::byte>& each : all_gather_bytes(host_, std::as_bytes(text))) {
    texts.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  }
  return texts;
}

/// All ranks of the run.
void VllmRollout::meet() { signals_.barrier(); }

/// Workers see their own GPUs first, then the others, whose memory they read.
VllmServerSetting VllmRollout::server_setting(const std::vector<std::string>& devices) const {
  std::vector<std::string> order;
  const auto add = [&](const std::string& device) {
    const bool is_new = std::find(order.begin(), order.end(), device) == order.end();
    if (!device.empty() && is_new) order.push_back(device);
  };
  const ParallelLayout& layout = setting_.rollout.layout;
  for (int tp_rank = 0; tp_rank < layout.tp; ++tp_rank) {
    const int rank = setting_.rollout.rank_at(worker_coord(replica_, tp_rank, layout));
    add(devices[static_cast<std::size_t>(rank)]);
  }
  for (const std::string& device : devices) add(device);
  std::string visible;
  for (const std::string& device : order) visible += (visible.empty() ? "" : ",") + device;
  const RolloutOptions& rollout = setting_.rollout_options;
  return {.model = setting_.model,
          .devices = visible,
          .dtype = vllm_dtype(setting_.dtype),
          .logprobs_mode = logprobs_mode(rollout.sampling),
          .tp = layout.tp,
          .max_model_len = setting_.prompt_tokens + rollout.max_response_tokens,
          .max_num_seqs = rollout.max_sequences,
          .max_num_batched_tokens = rollout.prefill_tokens == 0
                                        ? 0
                                        : std::max(rollout.prefill_tokens, rollout.max_sequences),
          .gpu_memory_utilization = options_.gpu_memory_utilization,
          .enforce_eager = options_.enforce_eager,
          .enable_prefix_caching = options_.enable_prefix_caching,
          .sleeps = options_.sleeps,
          .program = options_.program,
          .arguments = options_.arguments,
          .log = setting_.logs / ("vllm-" + std::to_string(replica_) + ".log")};
}

VllmWorkerSlices VllmRollout::slices_of(int replica, int tp_rank) const {
  const ParallelLayout& layout = setting_.rollout.layout;
  const int rank = setting_.rollout.rank_at(worker_coord(replica, tp_rank, layout));
  return vllm_slices(*setting_.table, setting_.training, setting_.dtype, layout.tp, tp_rank, rank);
}

std::span<const VllmWorkerSlices> VllmRollout::own_workers() const {
  const auto each = static_cast<std::size_t>(setting_.rollout.layout.tp);
  return std::span(workers_).subspan(static_cast<std::size_t>(std::max(replica_, 0)) * each, each);
}

void VllmRollout::send_beside(std::string_view phase, const std::function<void()>& send,
                              const std::function<void()>& call) {
  if (link_ == nullptr) return on_speaker(phase, call);
  std::future<void> spoken =
      std::async(std::launch::async, [&, phase] { on_speaker(phase, call); });
  as_sender(send);
  spoken.get();
}

void VllmRollout::as_sender(const std::function<void()>& send) {
  try {
    send();
  } catch (const Error& error) {
    failure_ = error;
  }
}

ReshardReport VllmRollout::move_weights() {
  meet();  // weights are final everywhere
  const Stopwatch watch;
  on_speaker("reshard", [&] {
    if (!options_.sleeps) stage_ = Stage::asleep;  // the weights of the step before
    advance_to(Stage::memory);
  });
  settle();
  const Stopwatch moving;
  send_beside(
      "reshard", [&] { link_->send(rounds_); }, [&] { advance_to(Stage::weights); });
  meet();  // they may change again
  ReshardReport report = planned_;
  report.seconds = moving.seconds();
  report.exposed_s = watch.seconds();
  if (link_ != nullptr) as_sender([&] { link_->finish(); });
  report.verified = setting_.verify && options_.transport == WeightTransport::mapped;
  on_speaker("reshard", [&] { advance_to(Stage::ready); });
  settle();
  return report;
}

VllmSamples VllmRollout::generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                                  const RolloutOptions& options) {
  VllmSamples samples;
  std::vector<std::vector<Sequence>> answers(prompts.size());
  on_speaker("gen", [&] {
    answer_in_parallel(server_->now(), step, prompts, options, setting_.table->model.vocab,
                       options_.request_timeout_s, answers);
  });
  if (!speaks() || failure_) return {};
  for (std::vector<Sequence>& each : answers) {
    std::move(each.begin(), each.end(), std::back_inserter(samples.sequences));
  }
  for (const TokenPrompt& prompt : prompts) {
    samples.prompt_tokens += static_cast<std::int64_t>(prompt.tokens.size());
  }
  for (const Sequence& sequence : samples.sequences) {
    samples.response_tokens += static_cast<std::int64_t>(sequence.response.size());
  }
  return samples;
}

void VllmRollout::sleep() {
  if (!options_.sleeps) return;
  on_speaker("sleep", [&] {
    stage_ = Stage::asleep;  // one in its place needs no weights
    server_->now().sleep(options_.request_timeout_s);
  });
}

}  // namespace tessera
