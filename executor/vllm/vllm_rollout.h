// Generation by vLLM servers, one a replica of the rollout: what RolloutEngine (rollout/generate.h)
// is for Tessera's own engine.
//
// The rank that speaks for a replica starts its server, or joins one, and calls it. Weights come
// straight from the memory of the training ranks: every rank offers its block once, and at each
// update the workers of the servers take their slices (slices.h) out of the blocks that they map,
// or are sent them (weight_messages.h). Between generations a server sleeps: its memory is given
// back. A server that is lost is started again (replica_server.h), or, where it may not be, the
// ranks agree on that at the end of a call and all throw ServerLost, so that they can save what
// they train. Ranks wait for one another on their processors: a collective of GPUs would take turns
// with the server on the same GPU. Functions are collective over the run's ranks where they say so.
// Owned by the rank's Worker; one thread. Free of torch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/certificate/certificate.h"
#include "executor/comm/communicator.h"
#include "executor/reshard/reshard_report.h"
#include "executor/rollout/request_queue.h"
#include "executor/storage/host_signals.h"
#include "executor/vllm/block_giver.h"
#include "executor/vllm/options.h"
#include "executor/vllm/replica_server.h"
#include "executor/vllm/server.h"
#include "executor/vllm/server_weights.h"
#include "executor/vllm/slices.h"
#include "executor/vllm/weight_link.h"
#include "executor/vllm/weight_messages.h"

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
  /// After each update workers that map the trainer's memory compare what they hold with it; a
  /// difference is an Error(check_failed) with the tensors' names. Those of a server in another's
  /// place always do, at its first update. Of the others certify() tells.
  bool verify = false;
  NcclCalls nccl;              // of ranks with GPUs
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

  /// Offers this rank's block, nullptr: it trains nothing. The workers map all blocks, or meet the
  /// ranks that send. Once; collective. The block outlives this object. Throws Error(missing) with
  /// the worker's reason.
  void attach(const SharedBlock* block);
  /// Wakes the servers and brings them the weights, which must be final on every rank. Collective.
  /// `seconds` of the report are those of the bytes' way, `exposed_s` those of all. Throws Error
  /// (check_failed) where a worker got other bytes than its slices have.
  ReshardReport move_weights();
  /// Compares digests of what every worker holds with those of what is trained, `training` on this
  /// rank. Collective over the run's ranks, whose report is of all servers; memory of weights must
  /// be awake. Throws ServerLost on all of them where a server is lost.
  CertificateReport certify(const HeldWeights& training, MemoryOps& ops);
  /// The certificate's blocks and names. Once certify() was called.
  const WeightCertificate& certificate() const { return *certificate_; }
  /// The samples of the replica's share of prompts, on the rank that speaks for it; elsewhere none,
  /// when that one has them. Collective over a replica's ranks. Sequences are checked
  /// (generate_call.h). settle() comes next: of a server that is lost there are no samples.
  VllmSamples generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                       const RolloutOptions& options);
  /// Throws on every rank where a call has failed on any: Error(check_failed) where a server
  /// answered or holds what is wrong, else ServerLost. Collective over the run's ranks.
  void settle();
  /// Whether some server was started in another's place since certify(): what it holds is to be
  /// compared before its samples are used. On every rank alike.
  bool unproven() const { return unproven_; }
  /// The step that calls are for, which failures name.
  void at_step(std::int64_t step) {
    if (server_ != nullptr) server_->at_step(step);
  }
  /// A line for each server that was started in another's place and that settle() has heard of,
  /// on every rank; once.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }
  /// Gives the server's memory back on all of the replica's ranks, over which it is collective.
  /// Nothing where servers do not sleep.
  void sleep();

 private:
  /// How far a server has come since it slept, or since its weights were final.
  enum class Stage : std::uint8_t { asleep, memory, weights, ready };

  bool speaks() const { return server_ != nullptr; }
  /// The call on the rank that speaks for the replica, for which its other ranks wait; nothing on
  /// ranks of no replica, nor once the server is lost. Whoever waits hears of other failures.
  void on_speaker(std::string_view phase, const std::function<void()>& call);
  /// `send` on a rank that sends, while the workers are called.
  void send_beside(std::string_view phase, const std::function<void()>& send,
                   const std::function<void()>& call);
  /// What a rank does that sends; a server that does not take it is lost.
  void as_sender(const std::function<void()>& send);
  void advance_to(Stage stage);
  void throw_failures();
  void restore();
  RankCoord speaker_coord(int replica) const;
  void meet();
  /// By rank. Collective over the run's ranks.
  std::vector<std::string> texts_of_ranks(const std::string& mine);
  int replicas() const { return setting_.rollout.layout.dp; }
  std::unique_ptr<ReplicaServer> make_server(const std::vector<std::string>& devices) const;
  VllmServerSetting server_setting(const std::vector<std::string>& devices) const;
  VllmWorkerSlices slices_of(int replica, int tp_rank) const;
  std::span<const VllmWorkerSlices> own_workers() const;
  void attach_mapped(const SharedBlock* block);
  void attach_messages(const SharedBlock* block);
  VllmLinkTable meet_senders(bool sends);
  void make_certificates();
  WeightDifference locate(int worker, int block, const HeldWeights& training, MemoryOps& ops);

  Communicator& host_;
  VllmSetting setting_;
  VllmOptions options_;
  int replica_ = -1;  // that this rank belongs to; -1 = none
  int speaker_ = -1;  // rank that speaks for it
  HostSignals signals_;
  std::uint64_t calls_ = 0;                // on_speaker's
  std::unique_ptr<ReplicaServer> server_;  // of the rank that speaks
  Stage stage_ = Stage::asleep;            // of it
  bool fresh_ = false;                     // it is in another's place, and had no weights yet
  std::optional<Error> failure_;           // why it has none any more
  bool unproven_ = false;                  // see unproven()
  std::vector<std::string> news_;
  std::unique_ptr<BlockGiver> giver_;
  std::vector<VllmWorkerSlices> workers_;  // of all servers, a replica's behind the other's
  std::optional<WeightCertificate> certificate_;
  std::unique_ptr<ServerWeights> held_;  // by the speaker's server
  std::unique_ptr<WeightLink> link_;     // of a rank that sends
  std::vector<WeightRound> rounds_;      // what it sends
  std::string table_;                    // of the speaker's server (slices.h)
  ReshardReport planned_;                // bytes, alike in every step
};

}  // namespace tessera
