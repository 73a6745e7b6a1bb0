#include "cost_models/reshard/travel.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr Bytes kDefaultStages{std::int64_t{512} << 20};  // executor/reshard/reshard_path.cc

Traffic total(const MovedBytes& moved) { return moved.intra + moved.inter; }

MovedBytes part_of(const MovedBytes& moved, double rounds) {
  return {moved.intra / rounds, moved.inter / rounds, moved.over_switch / rounds,
          moved.over_socket / rounds, moved.under_leaf / rounds};
}

// A group's all-gather of nothing: what it costs to begin one.
Seconds gather_latency(int ranks, const ClusterSpec& cluster, const Calibration& calibration) {
  return collective_seconds(Collective::all_gather, Traffic{1}, {ranks, 1}, cluster, calibration);
}

// Bytes that stay within the node, of one round, over everybody's own links.
Seconds own_seconds(Traffic bytes, int messages, ReshardTransport transport,
                    const ClusterSpec& cluster, const Calibration& calibration) {
  if (bytes <= 0) return {};
  const int ranks = std::max(2, messages + 1);
  switch (transport) {
    case ReshardTransport::send_recv:
      return collective_seconds(Collective::send_receive, bytes, {2, 1}, cluster, calibration);
    case ReshardTransport::all_gather:
      return collective_seconds(Collective::all_gather, bytes * ranks / (ranks - 1), {ranks, 1},
                                cluster, calibration);
    case ReshardTransport::window:
      return reshard_seconds(bytes, {}, 0, cluster, calibration) +
             gather_latency(ranks, cluster, calibration);
    case ReshardTransport::host:
      return host_copy_seconds(bytes, calibration);
    case ReshardTransport::automatic:
    case ReshardTransport::copy_engine:
      break;
  }
  return reshard_seconds(bytes, {}, messages, cluster, calibration);
}

bool reads_devices(ReshardTransport transport, const Calibration& calibration) {
  const bool host_is_device = calibration.cores > 0;  // ranks on a host's cores share its memory
  return transport == ReshardTransport::automatic || transport == ReshardTransport::copy_engine ||
         (transport == ReshardTransport::host && host_is_device);
}

}  // namespace

double rounds_of(Traffic busiest, Bytes bucket) {
  if (bucket <= 0) return 1;
  return std::max(1.0, std::ceil(busiest.value / static_cast<double>(bucket.value)));
}

Seconds travel_seconds(const MovedBytes& received, int messages, const MovedBytes& busiest,
                       const ReshardTravel& travel, const ClusterSpec& cluster,
                       const Calibration& calibration, std::optional<SharedSeconds> shared) {
  const double rounds = rounds_of(std::max(total(received), total(busiest)), travel.bucket);
  const MovedBytes in = part_of(received, rounds), out = part_of(busiest, rounds);
  if (reads_devices(travel.transport, calibration) && !shared) {
    return rounds * arrival_seconds(in, messages, out, cluster, calibration);
  }
  const Traffic inter = std::max(over_uplinks(in, cluster), over_uplinks(out, cluster));
  Seconds between = reshard_seconds({}, inter, 0, cluster, calibration);
  if (shared && inter > 0) {
    between = shared->across / rounds + Seconds{calibration.inter_latency_s.value};
  }
  const ReshardTransport by = reads_devices(travel.transport, calibration)
                                  ? ReshardTransport::copy_engine
                                  : travel.transport;
  const Seconds own =
      own_seconds(std::max(in.intra, out.intra), messages, by, cluster, calibration);
  const Seconds inside =
      shared ? std::max(own, shared->within / rounds)
             : std::max({own, shared_seconds(in, cluster), shared_seconds(out, cluster)});
  // Through host memory a round is fetched while the next one leaves.
  const double halves = by == ReshardTransport::host ? 1 : 0;
  return std::max((rounds + halves) * inside, rounds * between);
}

Seconds gather_seconds(Traffic whole, double pieces, GroupShape group, const ClusterSpec& cluster,
                       const Calibration& calibration) {
  return pieces *
         collective_seconds(Collective::all_gather, whole / pieces, group, cluster, calibration);
}

Bytes travel_stages(const ReshardTravel& travel) {
  switch (travel.transport) {
    case ReshardTransport::window:
    case ReshardTransport::all_gather:
    case ReshardTransport::send_recv:
      return travel.bucket > 0 ? travel.bucket * 4 : kDefaultStages;
    case ReshardTransport::automatic:
    case ReshardTransport::copy_engine:
    case ReshardTransport::host:
      break;
  }
  return {};
}

}  // namespace tessera
