#include "executor/vllm/vllm_rollout.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/stopwatch.h"
#include "executor/vllm/generate_call.h"
#include "executor/vllm/parallel_requests.h"

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

/// Short texts of all ranks.
using Word = std::array<char, 96>;
std::vector<std::string> gather_words(Communicator& host, const std::string& mine) {
  Word word{};
  if (mine.size() >= word.size()) throw Error(ExitCode::internal, mine + " is too long");
  std::memcpy(word.data(), mine.data(), mine.size());
  std::vector<Word> all(static_cast<std::size_t>(host.size()));
  host.all_gather(word.data(), all.data(), word.size(), DType::uint8);
  std::vector<std::string> texts;
  for (const Word& one : all) texts.emplace_back(one.data());
  return texts;
}

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

}  // namespace

VllmRollout::VllmRollout(Communicator& host, VllmSetting setting, const VllmOptions& options)
    : host_(host),
      setting_(std::move(setting)),
      options_(options),
      signals_(host, kPatienceSeconds) {
  const std::vector<std::string> devices = gather_words(host_, setting_.device);
  const int index = setting_.rollout.index_of(host_.rank());
  if (index >= 0) {
    const RankCoord& coord = setting_.rollout.coords[static_cast<std::size_t>(index)];
    replica_ = replica_of(coord, setting_.rollout.layout);
    speaker_ = setting_.rollout.rank_at(speaker_coord(replica_));
    if (speaker_ == host_.rank()) {
      server_ = options_.servers.empty() ? std::make_unique<VllmServer>(server_setting(devices))
                                         : std::make_unique<VllmServer>(options_.servers.at(
                                               static_cast<std::size_t>(replica_)));
    }
  }
  on_speaker([&] { server_->await_ready(options_.start_timeout_s); });
  sleep();
  meet();
}

RankCoord VllmRollout::speaker_coord(int replica) const {
  return worker_coord(replica, 0, setting_.rollout.layout);
}

void VllmRollout::on_speaker(const std::function<void()>& call) {
  if (replica_ < 0) return;
  ++calls_;
  if (!speaks()) return signals_.await(speaker_, kCallSlot, calls_);
  try {
    call();
  } catch (...) {
    signals_.abort();
    throw;
  }
  signals_.raise(kCallSlot, calls_);
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

void VllmRollout::attach(const SharedBlock* block) {
  for (int replica = 0; replica < replicas(); ++replica) {
    for (int tp_rank = 0; tp_rank < setting_.rollout.layout.tp; ++tp_rank) {
      workers_.push_back(slices_of(replica, tp_rank));
      planned_.busiest = std::max(planned_.busiest, workers_.back().bytes_moved);
      if (workers_.back().rank == host_.rank()) planned_.received = workers_.back().bytes_moved;
    }
  }
  // Every slice that a worker's rank does not hold arrives once: the bound is met.
  planned_.lower_bound = planned_.planned = planned_.busiest;
  if (options_.transport == WeightTransport::messages) {
    planned_.transport = ReshardTransport::send_recv;
    attach_messages(block);
  } else {
    planned_.transport =
        setting_.device.empty() ? ReshardTransport::host : ReshardTransport::copy_engine;
    attach_mapped(block);
  }
  meet();
}

void VllmRollout::attach_mapped(const SharedBlock* block) {
  if (block != nullptr) giver_ = std::make_unique<BlockGiver>(*block);
  const std::vector<std::string> names =
      gather_words(host_, giver_ == nullptr ? "" : giver_->name());
  std::vector<std::int64_t> sizes(names.size());
  const std::int64_t size = block != nullptr ? block->bytes() : 0;
  host_.all_gather(&size, sizes.data(), 1, DType::int64);
  std::vector<VllmBlock> blocks;
  for (std::size_t i = 0; i < names.size(); ++i) blocks.push_back({names[i], sizes[i]});
  on_speaker([&] {
    table_ = vllm_table_json(own_workers(), blocks, setting_.dtype, !setting_.device.empty());
    server_->call_workers("tessera_attach", {table_}, options_.start_timeout_s);
  });
}

/// Workers look at their tables first: who is refused keeps nobody waiting.
void VllmRollout::attach_messages(const SharedBlock* block) {
  cut_rounds(*setting_.table, setting_.dtype, setting_.rollout.layout.tp, workers_);
  if (block != nullptr) {
    rounds_ = rounds_of(host_.rank(), block->data(), workers_, setting_.dtype);
  }
  const bool sends = std::any_of(rounds_.begin(), rounds_.end(),
                                 [](const WeightRound& round) { return !round.empty(); });
  VllmLinkTable link = meet_senders(sends);
  link.workers = static_cast<int>(workers_.size());
  link.first_worker = std::max(replica_, 0) * setting_.rollout.layout.tp;
  on_speaker([&] {
    table_ = vllm_table_json(own_workers(), link, setting_.dtype, !setting_.device.empty());
    server_->call_workers("tessera_attach", {table_}, options_.start_timeout_s);
  });
  meet();
  send_beside([&] { link_->join(); },
              [&] {
                server_->call_workers("tessera_join", {std::to_string(options_.request_timeout_s)},
                                      options_.start_timeout_s);
              });
}

/// Makes the link of a rank that sends; what workers must know of all. Collective.
VllmLinkTable VllmRollout::meet_senders(bool sends) {
  VllmLinkTable table{.senders = senders_to(workers_), .sockets = {}, .nccl_id = {}};
  const int workers = static_cast<int>(workers_.size());
  if (setting_.nccl.make_world == nullptr) {
    if (sends) link_ = make_socket_link(workers, options_.request_timeout_s);
    const std::vector<std::string> names =
        gather_words(host_, link_ == nullptr ? "" : link_->name());
    for (const int rank : table.senders) {
      table.sockets.push_back(names[static_cast<std::size_t>(rank)]);
    }
    return table;
  }
  NcclId id{};
  if (host_.rank() == table.senders.front()) id = setting_.nccl.make_id();
  host_.broadcast(id.data(), id.size(), DType::uint8, table.senders.front());
  for (const char byte : id) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(byte));
    table.nccl_id += digits.data();
  }
  if (!sends) return table;
  const auto place = std::find(table.senders.begin(), table.senders.end(), host_.rank());
  const int size = static_cast<int>(table.senders.size()) + workers;
  link_ = make_world_link(
      [nccl = setting_.nccl, id, place = static_cast<int>(place - table.senders.begin()), size,
       timeout_s = options_.request_timeout_s] {
        return nccl.make_world(id, place, size, timeout_s);
      },
      static_cast<int>(table.senders.size()));
  return table;
}

void VllmRollout::send_beside(const std::function<void()>& send,
                              const std::function<void()>& call) {
  if (link_ == nullptr) return on_speaker(call);
  std::future<void> spoken = std::async(std::launch::async, [&] { on_speaker(call); });
  send();
  spoken.get();
}

void VllmRollout::bring_weights() {
  send_beside([&] { link_->send(rounds_); },
              [&] {
                check_moved(server_->call_workers("tessera_update", {}, options_.request_timeout_s),
                            own_workers());
                if (setting_.verify && options_.transport == WeightTransport::mapped) {
                  server_->call_workers("tessera_verify", {}, options_.request_timeout_s);
                }
              });
}

ReshardReport VllmRollout::move_weights() {
  meet();  // weights are final everywhere
  const Stopwatch watch;
  on_speaker([&] {
    if (options_.sleeps) server_->wake("weights", options_.request_timeout_s);
  });
  meet();
  const Stopwatch moving;
  bring_weights();
  meet();  // they may change again
  ReshardReport report = planned_;
  report.seconds = moving.seconds();
  report.exposed_s = watch.seconds();
  if (link_ != nullptr) link_->finish();
  report.verified = setting_.verify && options_.transport == WeightTransport::mapped;
  on_speaker([&] {
    options_.sleeps ? server_->wake("kv_cache", options_.request_timeout_s)
                    : server_->reset_prefix_cache(options_.request_timeout_s);
  });
  return report;
}

VllmSamples VllmRollout::generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                                  const RolloutOptions& options) {
  VllmSamples samples;
  on_speaker([&] {
    samples.sequences = generate_in_parallel(
        *server_, step, prompts, options, setting_.table->model.vocab, options_.request_timeout_s);
  });
  if (!speaks()) return {};
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
  on_speaker([&] { server_->sleep(options_.request_timeout_s); });
}

}  // namespace tessera
