#include "executor/reshard/message_path.h"

#include "cost_models/spec/problem.h"

namespace tessera {
namespace {

void* at(void* data, std::int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const void* at(const void* data, std::int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

}  // namespace

MessagePath::MessagePath(const SwitchPlan& plan, const SwitchSite& site, const MergeLimits& limits)
    : site_(site), messages_(staged_messages(plan, site.host->rank(), site.host->size(), limits)) {
  if (messages_.out_bytes > 0) out_ = new_block(site_, messages_.out_bytes);
  if (messages_.in_bytes > 0) in_ = new_block(site_, messages_.in_bytes);
  if (site_.copies != nullptr) return;
  TESSERA_CHECK(!site_.make_block);  // device memory comes with its copies
  own_copies_ = make_host_copies();
  site_.copies = own_copies_.get();
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
