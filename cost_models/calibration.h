// The rates and times that a machine really reaches: constants that every cost function takes.
//
// One value per kind of machine, read from a versioned JSON (configs/calibrations/NAME.json) that
// stands beside the cluster. Every constant says whether it was measured on this machine or
// shipped, where it comes from, and how uncertain it is. Seconds, bytes and flop per second; ratios
// have no unit. A plain value, safe to share between threads.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/nccl/tuning.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

inline constexpr int kCalibrationVersion = 1;

struct Constant {
  double value = 0;
  double error = 0;  // one standard deviation relative to the value; 0 = unknown
  bool measured = false;
  std::string origin;  // publication, data set or command
  bool operator==(const Constant&) const = default;
};

/// Measured time / roofline time over a grid of sizes, interpolated linearly in the logarithms of
/// all coordinates and clamped outside. Without axes the ratio is 1 everywhere.
struct RatioTable {
  std::vector<std::vector<double>> axes;  // ascending, at least one value each
  std::vector<double> ratio;              // row major, the last axis fastest
  std::string origin;
  bool measured = false;

  double at(std::span<const double> point) const;
  bool operator==(const RatioTable&) const = default;
};

enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_receive,
  copy_engine,
};
std::string_view name_of(Collective collective);
std::optional<Collective> collective_from(std::string_view name);

/// t = alpha + V / bandwidth + ramp sqrt(V / 1 MB) for a group of `ranks` on `nodes` nodes; V is
/// what a rank puts on the wire (wire_bytes in collective.h). The form fits NCCL's curves on A100,
/// H100, H200 and B200 to 3 % median and extrapolates from 512 MB to 8 GB within 2 %.
struct CollectiveConstants {
  Collective collective = Collective::all_reduce;
  int ranks = 2, nodes = 1;
  Seconds alpha_s;
  BytesPerSecond bandwidth;
  Seconds ramp_s;
  double error = 0;
  bool measured = false;
  std::string origin;
  bool operator==(const CollectiveConstants&) const = default;
};

/// "all_gather/8x1": collective, ranks and nodes.
std::string name_of(const CollectiveConstants& curve);

/// Covariance of constants that one fit determined together, as relative deviations: row major,
/// of.size() squared. A constant's `error` holds its own deviation and that of held-out samples.
struct FitCovariance {
  std::vector<std::string> of;  // names as in constant_names, or "all_gather/8x1.alpha_s", ...
  std::vector<double> relative;
  bool operator==(const FitCovariance&) const = default;
};

struct Calibration {
  std::string name;     // "h200", "cpu", or the user's
  std::string device;   // of the ClusterSpec it holds for
  std::string note;     // shown with every prediction
  std::string created;  // ISO 8601; empty for shipped files

  /// Cores that all ranks of a node share; 0 = every rank has a device of its own. With cores, all
  /// compute constants are those of a rank that has a core to itself.
  int cores = 0;
  /// Ranks that ran at once on a node when `collectives` were measured; 0 = not stated.
  int ranks = 0;
  /// True where kernels queue up behind the host (GPUs): a pass costs the larger of its host time
  /// and its device time. False: the sum.
  bool overlapped_dispatch = true;

  Constant matmul_flops;        // flop/s that the GEMM and attention ratios refer to, 16 bit
  Constant fp32_factor;         // GEMM time in fp32 / in 16 bit
  Constant memory_bandwidth;    // bytes/s that the ratios refer to (GEMM, decode attention)
  Constant stream_bandwidth;    // bytes/s of elementwise kernels and the optimizer
  Constant matmul_floor_s;      // fixed part of a GEMM kernel
  Constant attention_floor_s;   // fixed part of an attention kernel
  Constant attention_backward;  // time of the backward kernel / of the forward kernel
  Constant kernel_floor_s;      // fixed part of an elementwise kernel
  Constant dispatch_s;          // host time per operator of a forward pass
  Constant
      backward_dispatch_s;  // host time per operator of a backward pass (autograd's part in it)
  Constant call_s;          // host time per call of a role (batch preparation, gathers)
  Constant decode_step_s;   // host time per decode step beside the model's operators
  /// Time of a training step's products (transposed operands and fp32 sums included) under load
  /// that lasts, over what the constants above say of short bursts: clocks fall.
  Constant sustained;
  /// 1 + time that kernels lose for each second (of its time alone) that a collective on the
  /// multiprocessors runs beside them.
  Constant overlap_slowdown = {1.2, 0.1, false, "Galvatron's overlap coefficient, 1.1 to 1.3"};
  /// Rate of grouped products (a MoE layer's experts in one launch) over matmul_flops.
  Constant grouped_rate = {0.61, 0.15, false, "as on H100"};
  /// Time of attention's FLOPs at head dimension 64 over that at 128, to which the ratios refer:
  /// exponentials count by scores, not by FLOPs.
  Constant narrow_heads = {1, 0.3, false, "assumed"};
  /// Time of the software that hands new weights to the rollout, over what the engine's traits say
  /// (HandoverTraits). A run alone tells it (tessera learn), so files say it only where one did.
  Constant handover = {1, 0, false, "as the engine's traits say"};
  /// Time of an engine's software around its passes, and of a server's host between two replayed
  /// steps, over what is known of each (SoftwareTraits; DecodeTraits::step_gap and what rollout.cc
  /// has of servers): hosts differ. As with handover, a run tells them.
  Constant software = {1, 0.5, false, "as the engine's traits say"};
  Constant serving = {1, 0.3, false, "as known of servers"};
  RatioTable matmul;   // axes m, n, k
  RatioTable prefill;  // axes sequences x query heads, length
  RatioTable decode;   // axes query heads per kv head, sequences x kv heads, context

  std::vector<CollectiveConstants> collectives;
  Constant inter_latency_s;   // added per node-to-node hop of a group that spans nodes
  Constant inter_efficiency;  // reached rate / rate of the network card
  Constant host_bandwidth;    // bytes/s between host and device, one way
  Constant reserve_bytes;     // per rank: device context, library workspaces, communicators
  Constant fragmentation;     // part of the device's memory that the allocator cannot use
  /// With cores: part of a core that a rank waiting in a collective keeps busy (spinning = 1).
  Constant idle_share;
  std::vector<FitCovariance> covariances;
  /// An algorithm or protocol of NCCL's that is asked for instead of its choice: collectives take
  /// as much longer as NCCL's model says (nccl/tuning.h). No part of the file.
  NcclChoice nccl;

  /// On a cluster with several GPU types: the constants of its views (spec/node_groups.h), from
  /// view 1 on; those above are view 0's, of a pool that touches all types. No part of the file.
  std::vector<Calibration> views;

  bool operator==(const Calibration&) const = default;
};

/// The constants of a pool of that view; of all GPUs where there are none by view.
inline const Calibration& seen_from(const Calibration& calibration, int view) {
  const auto index = static_cast<std::size_t>(view);
  return view == 0 || index > calibration.views.size() ? calibration : calibration.views[index - 1];
}

/// The scalar constants under the names that files and predictions use.
struct NamedConstant {
  std::string_view name;
  Constant Calibration::*member;
};
inline constexpr std::array<NamedConstant, 25> kConstants = {{
    {"matmul_flop_per_s", &Calibration::matmul_flops},
    {"fp32_factor", &Calibration::fp32_factor},
    {"memory_bytes_per_s", &Calibration::memory_bandwidth},
    {"stream_bytes_per_s", &Calibration::stream_bandwidth},
    {"matmul_floor_s", &Calibration::matmul_floor_s},
    {"attention_floor_s", &Calibration::attention_floor_s},
    {"attention_backward", &Calibration::attention_backward},
    {"kernel_floor_s", &Calibration::kernel_floor_s},
    {"dispatch_s", &Calibration::dispatch_s},
    {"backward_dispatch_s", &Calibration::backward_dispatch_s},
    {"call_s", &Calibration::call_s},
    {"decode_step_s", &Calibration::decode_step_s},
    {"sustained", &Calibration::sustained},
    {"overlap_slowdown", &Calibration::overlap_slowdown},
    {"grouped_rate", &Calibration::grouped_rate},
    {"narrow_heads", &Calibration::narrow_heads},
    {"handover", &Calibration::handover},
    {"software", &Calibration::software},
    {"serving", &Calibration::serving},
    {"inter_latency_s", &Calibration::inter_latency_s},
    {"inter_efficiency", &Calibration::inter_efficiency},
    {"host_bytes_per_s", &Calibration::host_bandwidth},
    {"reserve_bytes", &Calibration::reserve_bytes},
    {"fragmentation", &Calibration::fragmentation},
    {"idle_share", &Calibration::idle_share},
}};

/// False of a constant that nobody has stated: files and predictions do not name it.
bool is_stated(const NamedConstant& named, const Calibration& calibration);

/// Names of the constants that were measured (or, with false, shipped), for the plan's prediction.
std::vector<std::string> constant_names(const Calibration& calibration, bool measured);

/// Throughput of a rank's compute when `busy` ranks of its node work at once: min(1, cores / busy).
double core_share(const Calibration& calibration, double busy);
/// Share of a core for each of `busy` ranks when `waiting` further ranks poll: those count
/// idle_share each.
double core_share(const Calibration& calibration, double busy, double waiting);

std::string to_json(const Calibration& calibration);
std::optional<Calibration> parse_calibration(std::string_view text, const std::string& file,
                                             Problems& problems);
std::optional<Calibration> read_calibration(const std::filesystem::path& file, Problems& problems);
void write_calibration(const Calibration& calibration, const std::filesystem::path& file);

/// A file, or a preset's name (configs/calibrations/NAME.json).
std::optional<Calibration> find_calibration(const std::filesystem::path& where, Problems& problems);

/// Name of the shipped calibration for a device ("h200" for "H200-SXM-141GB", "cpu"), or nullopt.
std::optional<std::string> shipped_calibration(const DeviceSpec& device);

}  // namespace tessera
