#include "executor/reshard/buffered_reshard.h"

#include <array>
#include <cmath>

#include "executor/arena/byte_address.h"
#include "executor/transfers/staged_rounds.h"

namespace tessera {
namespace {

constexpr std::int64_t kBucketBytes = std::int64_t{64} << 20;  // by default

}  // namespace

BufferedReshard::BufferedReshard(const PlacedReshard& plan, const ReshardSite& site,
                                 const WeightReshardOptions& options, MemoryOps& ops, DType wire,
                                 bool by_reads)
    : plan_(plan), site_(site), options_(options), ops_(ops), wire_(wire) {
  const std::int64_t bound = options.bucket_bytes > 0 ? options.bucket_bytes : kBucketBytes;
  rounds_ = buffered_rounds(plan, site.host->rank(), site.host->size(), wire, bound);
  out_ = new_block(site, 2 * rounds_.out_bytes);
  in_ = rounds_.in_bytes > 0 ? new_block(site, 2 * rounds_.in_bytes) : nullptr;
  if (by_reads) peers_ = std::make_unique<PeerBlocks>(*site.host, out_.get());
}

void BufferedReshard::run(ReshardPath& path, const std::function<void()>& barrier,
                          ReshardReport& report) {
  const RoundMemory memory{peers_.get(), out_->data(), in_ ? in_->data() : site_.destination};
  const auto await_producer = [&] {
    if (site_.copies != nullptr) site_.copies->await_producer();
  };
  const std::vector<ReshardRound>& rounds = rounds_.rounds;
  if (!rounds.empty()) pack(rounds[0]);
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    await_producer();
    TransferSums sums;
    if (options_.verify) sums = sums_of(k).share(out_->data(), ops_, *site_.host);
    barrier();  // every rank has packed bucket k, and read bucket k - 1
    report.received += path.begin(rounds[k], memory, [](int) { return true; });
    if (k + 1 < rounds.size()) pack(rounds[k + 1]);
    path.end();
    if (options_.verify) sums_of(k).check_landed(sums, memory.to, ops_, plan_.tensors);
    unpack(rounds[k]);
  }
  await_producer();
  report.verified = options_.verify;
  if (loses()) report.cast_error = cast_error();
}

const RoundSums& BufferedReshard::sums_of(std::size_t k) {
  sums_.resize(rounds_.rounds.size());
  if (!sums_[k]) sums_[k].emplace(rounds_.rounds[k], site_.host->rank());
  return *sums_[k];
}

void BufferedReshard::pack(const ReshardRound& round) {
  for (const BufferCast& cast : round.pack) {
    const auto elements = static_cast<std::size_t>(cast.elements);
    const std::byte* from = at(site_.source, cast.from);
    if (loses()) {
      ops_.cast_noting_error(at(out_->data(), cast.to), wire_, from, elements);
    } else {
      ops_.cast(at(out_->data(), cast.to), wire_, from, plan_.source_type, elements);
    }
  }
}

void BufferedReshard::unpack(const ReshardRound& round) {
  for (const BufferCast& cast : round.unpack) {
    ops_.cast(at(site_.destination, cast.to), plan_.destination_type, at(in_->data(), cast.from),
              wire_, static_cast<std::size_t>(cast.elements));
  }
}

double BufferedReshard::cast_error() {
  const CastError error = ops_.take_cast_error();
  std::array<float, 2> sums{static_cast<float>(error.squared_error),
                            static_cast<float>(error.squared_norm)};
  site_.host->all_reduce(sums.data(), sums.size(), DType::fp32, ReduceOp::sum);
  return sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 0;
}

}  // namespace tessera
