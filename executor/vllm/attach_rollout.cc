// How a run's servers come to the trainer's memory: VllmRollout::attach.
#include <algorithm>
#include <array>
#include <cstdio>

#include "executor/vllm/vllm_rollout.h"

namespace tessera {

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
  settle();
}

void VllmRollout::attach_mapped(const SharedBlock* block) {
  if (block != nullptr) giver_ = std::make_unique<BlockGiver>(*block);
  const std::vector<std::string> names = texts_of_ranks(giver_ == nullptr ? "" : giver_->name());
  std::vector<std::int64_t> sizes(names.size());
  const std::int64_t size = block != nullptr ? block->bytes() : 0;
  host_.all_gather(&size, sizes.data(), 1, DType::int64);
  std::vector<VllmBlock> blocks;
  for (std::size_t i = 0; i < names.size(); ++i) blocks.push_back({names[i], sizes[i]});
  on_speaker("start", [&] {
    const std::string table =
        vllm_table_json(own_workers(), blocks, setting_.dtype, !setting_.device.empty());
    server_->now().call_workers("tessera_attach", {table}, options_.start_timeout_s);
    table_ = table;
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
  on_speaker("start", [&] {
    const std::string table =
        vllm_table_json(own_workers(), link, setting_.dtype, !setting_.device.empty());
    server_->now().call_workers("tessera_attach", {table}, options_.start_timeout_s);
  });
  settle();
  send_beside(
      "start", [&] { link_->join(); },
      [&] {
        server_->now().call_workers("tessera_join", {std::to_string(options_.request_timeout_s)},
                                    options_.start_timeout_s);
      });
}

/// Makes the link of a rank that sends; what workers must know of all. Collective.
VllmLinkTable VllmRollout::meet_senders(bool sends) {
  VllmLinkTable table{.senders = senders_to(workers_), .sockets = {}, .nccl_id = {}};
  const int workers = static_cast<int>(workers_.size());
  if (setting_.nccl.make_world == nullptr) {
    if (sends) link_ = make_socket_link(workers, options_.request_timeout_s);
    const std::vector<std::string> names = texts_of_ranks(link_ == nullptr ? "" : link_->name());
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

}  // namespace tessera
