#include "executor/reshard/message_path.h"

#include <array>

namespace tessera {
namespace {

constexpr std::int64_t kLarge = std::int64_t{16} << 20;

void* at(void* data, std::int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const void* at(const void* data, std::int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

/// Of what all ranks send and receive, an eighth or more. Collective.
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

}  // namespace

MessagePath::MessagePath(const SwitchPlan& plan, const SwitchSite& site,
                         std::optional<std::int64_t> merge_below, std::int64_t stage_bytes)
    : site_(site) {
  const int rank = site.host->rank(), ranks = site.host->size();
  messages_ = staged_messages(plan, rank, ranks, {merge_below.value_or(kMergeAll), stage_bytes});
  if (!merge_below && mostly_staged(messages_, *site.host)) {
    messages_ = staged_messages(plan, rank, ranks, {kLarge, stage_bytes});
  }
  if (messages_.out_bytes > 0) out_ = new_block(site_, messages_.out_bytes);
  if (messages_.in_bytes > 0) in_ = new_block(site_, messages_.in_bytes);
  own_copies_ = complete_copies(site_);
}

void MessagePath::post(const MessageRound& round) {
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

std::int64_t MessagePath::run() {
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
