#include "executor/transfers/staged_exchange.h"

#include <array>

#include "executor/arena/byte_address.h"

namespace tessera {
namespace {

constexpr std::int64_t kLarge = std::int64_t{16} << 20;

/// Whether an eighth or more of what all ranks send and receive is staged. Collective.
bool mostly_staged(const MessageRounds& messages, Communicator& host) {
  std::array<std::int64_t, 2> bytes{};  // staged, all
  for (const MessageRound& round : messages.rounds) {
    for (const auto* list : {&round.sends, &round.receives}) {
      for (const auto& message : *list) {
        bytes[1] += message.range.bytes;
        if (message.staged) bytes[0] += message.range.bytes;
      }
    }
  }
  host.all_reduce(bytes.data(), bytes.size(), DType::int64, ReduceOp::sum);
  return 8 * bytes[0] >= bytes[1];
}

/// The most that a rank's stages hold. Collective.
std::int64_t most_staged(const MessageRounds& messages, Communicator& host) {
  std::int64_t most = messages.out_bytes + messages.in_bytes;
  host.all_reduce(&most, 1, DType::int64, ReduceOp::max);
  return most;
}

/// Everything at once where the stages allow it: every round costs NCCL a start and an end.
MessageRounds planned_messages(const PlacedReshard& plan, Communicator& host,
                               std::optional<std::int64_t> merge_below, std::int64_t stage_bytes) {
  const int rank = host.rank(), ranks = host.size();
  const std::int64_t below = merge_below.value_or(kMergeAll);
  MessageRounds messages = staged_messages(plan, rank, ranks, {below, kMergeAll});
  if (most_staged(messages, host) <= stage_bytes) return messages;
  messages = staged_messages(plan, rank, ranks, {below, stage_bytes});
  if (merge_below || !mostly_staged(messages, host)) return messages;
  return planned_messages(plan, host, kLarge, stage_bytes);
}

}  // namespace

StagedExchange::StagedExchange(const PlacedReshard& plan, const ReshardSite& site,
                               std::optional<std::int64_t> merge_below, std::int64_t stage_bytes)
    : site_(site), messages_(planned_messages(plan, *site.host, merge_below, stage_bytes)) {
  if (messages_.out_bytes > 0) out_ = new_block(site_, messages_.out_bytes);
  if (messages_.in_bytes > 0) in_ = new_block(site_, messages_.in_bytes);
  own_copies_ = complete_copies(site_);
  if (!site_.register_memory) return;
  for (const SharedBlock* memory : {site_.block, static_cast<const SharedBlock*>(out_.get()),
                                    static_cast<const SharedBlock*>(in_.get())}) {
    if (memory != nullptr && memory->bytes() > 0) {
      registered_.push_back(site_.register_memory(*memory));
    }
  }
}

void StagedExchange::post(const MessageRound& round) {
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  for (const auto& [peer, staged, range] : round.sends) {
    const void* memory = staged ? out_->data() : site_.source;
    sends.push_back({peer, at(memory, range.offset), static_cast<std::size_t>(range.bytes)});
  }
  for (const auto& [peer, staged, range] : round.receives) {
    void* memory = staged ? in_->data() : site_.destination;
    receives.push_back({peer, at(memory, range.offset), static_cast<std::size_t>(range.bytes)});
  }
  site_.world->exchange(sends, receives);
}

std::int64_t StagedExchange::run() {
  const std::vector<MessageRound>& rounds = messages_.rounds;
  run_staged({.count = rounds.size(),
              .post = [&](std::size_t k) { post(rounds[k]); },
              .pack =
                  [&](std::size_t k, CopyBatch& batch) {
                    if (out_) append(batch, rounds[k].pack, site_.source, out_->data());
                  },
              .unpack =
                  [&](std::size_t k, CopyBatch& batch) {
                    if (in_) append(batch, rounds[k].unpack, in_->data(), site_.destination);
                  },
              .keep =
                  [&](std::size_t k, CopyBatch& batch) {
                    append(batch, rounds[k].kept, site_.source, site_.destination);
                  }},
             *site_.copies);
  std::int64_t received = 0;
  for (const MessageRound& round : rounds) {
    for (const auto& message : round.receives) received += message.range.bytes;
  }
  return received;
}

}  // namespace tessera
