#include "executor/transfers/staged_rounds.h"

#include <utility>

#include "cost_models/documents/check.h"
#include "executor/arena/byte_address.h"

namespace tessera {
namespace {

constexpr int kHere = -1;  // CopyBatch::peer within this rank's memory

}  // namespace

void run_staged(const StagedRounds& rounds, BlockCopies& copies) {
  if (rounds.count == 0) return;
  CopyBatch batch{.peer = kHere};
  const auto copy = [&] {
    copies.start({&batch, 1});
    copies.wait();
    batch = {.peer = kHere};
  };
  rounds.pack(0, batch);
  copy();
  int mark = -1;
  for (std::size_t k = 0; k + 1 < rounds.count + rounds.behind; ++k) {
    rounds.post(k);
    const int last = std::exchange(mark, copies.mark_producer());
    if (k < rounds.count) rounds.keep(k, batch);
    if (k > 0) copies.await_mark(last);
    if (k >= rounds.behind) rounds.unpack(k - rounds.behind, batch);
    if (k + 1 < rounds.count) rounds.pack(k + 1, batch);
    copy();
  }
  copies.await_mark(mark);
  rounds.unpack(rounds.count - 1, batch);
  copy();
}

void append(CopyBatch& batch, std::span<const StagedCopy> list, const void* from, void* to) {
  for (const StagedCopy& copy : list) {
    const std::byte* source = at(from, copy.from);
    std::byte* target = at(to, copy.to);
    if (source != target) batch.add(target, source, static_cast<std::size_t>(copy.bytes));
  }
}

std::unique_ptr<BlockCopies> complete_copies(ReshardSite& site) {
  if (site.copies != nullptr) return nullptr;
  TESSERA_CHECK(!site.make_block);
  std::unique_ptr<BlockCopies> own = make_host_copies();
  site.copies = own.get();
  return own;
}

std::unique_ptr<SharedBlock> new_block(const ReshardSite& site, std::int64_t bytes) {
  return site.make_block ? site.make_block(bytes) : make_host_block(bytes);
}

}  // namespace tessera
