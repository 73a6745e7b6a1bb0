// Generation by vLLM servers, one a replica of the rollout: what RolloutEngine (rollout/generate.h)
// is for Tessera's own engine.
//
// The rank that speaks for a replica starts its server, or joins one, and calls it. Weights come
// straight from the memory of the training ranks: every rank offers its block once, the workers of
// the servers map them, and at each update take their slices (slices.h). Between generations a
// server sleeps: its memory is given back. Ranks wait for one another on their processors: a
// collective of GPUs would take turns with the server on the same GPU. Functions are collective
// over the run's ranks where they say so. Owned by the rank's Worker; one thread. Free of torch.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/reshard/reshard_report.h"
#include "executor/rollout/request_queue.h"
#include "executor/storage/host_signals.h"
#include "executor/vllm/block_giver.h"
#include "executor/vllm/options.h"
#include "executor/vllm/server.h"
#include "executor/vllm/slices.h"

namespace tessera {

/// What the plan says of the rollout and of who trains its weights.
struct VllmSetting {
  std::shared_ptr<const ParameterTable> table;  // of the actor
  RankMap training, rollout;                    // ranks of the run
  DType dtype = DType::bf16;                    // of the actor's weights
  std::string model;                            // folder with config.json
  std::int64_t prompt_tokens = 0;               // the longest prompt
  RolloutOptions rollout_options;               // sampling, sequences, prefill and response tokens
  std::string device;  // this rank's, as CUDA_VISIBLE_DEVICES has it; "" = CPU
  /// After each update the workers compare what they hold with the trainer's memory; a difference
  /// is an Error(missing) with the tensors' names.
  bool verify = false;
  std::filesystem::path logs;  // folder of vllm-REPLICA.log
};

/// The samples of prompts, and how many tokens that were.
struct VllmSamples {
  std::vector<Sequence> sequences;  // in the order (prompt, sample)
  std::int64_t prompt_tokens = 0, response_tokens = 0;
};

class VllmRollout {
 public:
  /// Returns when every server is ready, and asleep. Collective over `host`, which outlives it.
  /// Throws Error(missing) where a server does not come.
  VllmRollout(Communicator& host, VllmSetting setting, const VllmOptions& options);

  /// Offers this rank's block, nullptr: it trains nothing; the workers map all blocks. Once;
  /// collective. The block outlives this object. Throws Error(missing) with the worker's reason.
  void attach(const SharedBlock* block);
  /// Wakes the servers and brings them the weights, which must be final on every rank. Collective.
  ReshardReport move_weights();
  /// The samples of the replica's share of prompts, on the rank that speaks for it; elsewhere none,
  /// when that one has them. Collective over a replica's ranks. Sequences are checked
  /// (generate_call.h). Throws Error(missing) where the server fails.
  VllmSamples generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                       const RolloutOptions& options);
  /// Gives the server's memory back on all of the replica's ranks, over which it is collective.
  /// Nothing where servers do not sleep.
  void sleep();

 private:
  bool speaks() const { return server_ != nullptr; }
  template <class Call>
  void on_speaker(const Call& call);
  void meet();
  int replicas() const { return setting_.rollout.layout.dp(); }
  VllmServerSetting server_setting(const std::vector<std::string>& devices) const;
  VllmWorkerSlices slices_of(int replica, int tp_rank) const;

  Communicator& host_;
  VllmSetting setting_;
  VllmOptions options_;
  int replica_ = -1;  // that this rank belongs to; -1 = none
  int speaker_ = -1;  // rank that speaks for it
  HostSignals signals_;
  std::uint64_t calls_ = 0;  // on_speaker's
  std::unique_ptr<VllmServer> server_;
  std::unique_ptr<BlockGiver> giver_;
  ReshardReport planned_;  // bytes, alike in every step
};

}  // namespace tessera
