#include "executor/reshard/reshard_path.h"

namespace tessera {
namespace {

constexpr std::int64_t kStageBytes = std::int64_t{512} << 20;  // of what is merged, by default

}  // namespace

bool PathSetup::can_read() const {
  const bool casts = plan.source_type != plan.destination_type;
  return site.copies != nullptr && (casts || site.block != nullptr);
}

bool PathSetup::moves_all_as_they_are() const {
  return !options.incremental && !options.wire && !rounds.rounds.empty();
}

std::int64_t PathSetup::stage_bytes() const {
  return options.bucket_bytes > 0 ? 4 * options.bucket_bytes : kStageBytes;
}

std::int64_t ReshardPath::run() {
  std::int64_t received = 0;
  for (std::size_t k = 0; k < setup_.rounds.rounds.size(); ++k) received += begin(k);
  end();
  return received;
}

std::int64_t ReshardPath::begin(std::size_t k) {
  return begin(setup_.rounds.rounds[k], setup_.memory, [](int) { return true; });
}

bool reads_peers(ReshardTransport transport) {
  return transport == ReshardTransport::copy_engine || transport == ReshardTransport::host;
}

}  // namespace tessera
