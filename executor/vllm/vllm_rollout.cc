#include "executor/vllm/vllm_rollout.h"

#include <algorithm>
#include <array>
#include <cstring>
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
    speaker_ = setting_.rollout.rank_at(worker_coord(replica_, 0, setting_.rollout.layout));
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

/// The call on the rank that speaks for the replica, for which its other ranks wait; nothing on
/// ranks of no replica. Whoever waits hears of a failure.
template <class Call>
void VllmRollout::on_speaker(const Call& call) {
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

void VllmRollout::attach(const SharedBlock* block) {
  if (block != nullptr) giver_ = std::make_unique<BlockGiver>(*block);
  const std::vector<std::string> names =
      gather_words(host_, giver_ == nullptr ? "" : giver_->name());
  std::vector<std::int64_t> sizes(names.size());
  const std::int64_t size = block != nullptr ? block->bytes() : 0;
  host_.all_gather(&size, sizes.data(), 1, DType::int64);
  std::vector<VllmBlock> blocks;
  for (std::size_t i = 0; i < names.size(); ++i) blocks.push_back({names[i], sizes[i]});

  const bool on_gpu = !setting_.device.empty();
  for (int replica = 0; replica < replicas(); ++replica) {
    std::vector<VllmWorkerSlices> workers;
    for (int tp_rank = 0; tp_rank < setting_.rollout.layout.tp; ++tp_rank) {
      workers.push_back(slices_of(replica, tp_rank));
      planned_.busiest = std::max(planned_.busiest, workers.back().bytes_moved);
      if (workers.back().rank == host_.rank()) planned_.received = workers.back().bytes_moved;
    }
    if (replica != replica_) continue;
    on_speaker([&] {
      server_->call_workers("tessera_attach",
                            {vllm_table_json(workers, blocks, setting_.dtype, on_gpu)},
                            options_.start_timeout_s);
    });
  }
  // Every slice that a worker's rank does not hold arrives once: the bound is met.
  planned_.lower_bound = planned_.planned = planned_.busiest;
  planned_.transport = on_gpu ? ReshardTransport::copy_engine : ReshardTransport::host;
  meet();
}

ReshardReport VllmRollout::move_weights() {
  meet();  // weights are final everywhere
  const Stopwatch watch;
  on_speaker([&] {
    if (options_.sleeps) server_->wake("weights", options_.request_timeout_s);
    server_->call_workers("tessera_update", {}, options_.request_timeout_s);
    if (setting_.verify) server_->call_workers("tessera_verify", {}, options_.request_timeout_s);
  });
  meet();  // they may change again
  ReshardReport report = planned_;
  report.verified = setting_.verify;
  report.seconds = report.exposed_s = watch.seconds();
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
