#include "executor/bench/reshard_bench.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "executor/bench/overlap_bench.h"
#include "executor/bench/reshard_ceilings.h"
#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"

namespace tessera {
namespace {

using nlohmann::json;

/// Runs on one case.
class CaseBench {
 public:
  CaseBench(const BenchSite& site, const ModelSpec& model, const ReshardCase& which,
            const ReshardBenchOptions& options)
      : site_(site),
        options_(options),
        table_(parameter_table(model)),
        which_(which),
        maps_(maps_of(which, model, table_, site.host->size(), options.dtype)),
        rig_(site, table_, maps_.training, maps_.rollout, options.dtype),
        ceilings_(site, options.repetitions),
        signals_(*site.host),
        traffic_(
            traffic_of(rig_.reshard().plan(), rig_.reshard().placed().tensors, site.host->size())),
        received_(rig_.reshard().plan().bytes_received.value),
        busiest_end_(busiest_end(traffic_)) {}

  json run() {
    const ReshardPlan& plan = rig_.reshard().plan();
    json result{
        {"from", describe(maps_.training.layout)},
        {"to", describe(maps_.rollout.layout)},
        {"case", which_.from + "->" + which_.to},
        {"model_bytes", table_.elements() * size_of(options_.dtype)},
        {"received_bytes", received_},
        {"lower_bound_bytes", plan.lower_bound.value},
        {"total_received_bytes", plan.total_received.value},
        {"busiest_end_bytes", busiest_end_},
        {"bound_by", busiest_end_ > received_ ? "the busiest sender" : "the busiest receiver"},
        {"rollout_bytes", rig_.arena().rollout.bytes},
        {"held_twice_bytes", most(rig_.arena().held_twice)}};
    for (const ReshardTransport transport : options_.transports) {
      result["transports"][std::string(name_of(transport))] = run_transport(transport);
    }
    result["way_back"] = way_back();
    if (options_.practice) result["practice"] = practice();
    if (options_.ceilings) {
      result["ceilings"] = ceilings();
      compare_with_bound(result);
    }
    return result;
  }

 private:
  /// The busiest end's bytes at the rate of the best pulls.
  void compare_with_bound(json& result) const {
    double rate = 0;
    for (const char* name : {"pull_same_bytes", "pull_large", "pull_in_steps"}) {
      const json& ceilings = result["ceilings"];
      if (ceilings.contains(name)) rate = std::max(rate, ceilings[name]["gb_per_s"].get<double>());
    }
    if (rate <= 0) return;
    const double bound = static_cast<double>(busiest_end_) * 1e-9 / rate;
    result["bound_s"] = bound;
    for (auto& [name, row] : result["transports"].items()) {
      row["of_bound"] = bound / row["seconds"].get<double>();
    }
  }

  std::int64_t most(std::int64_t mine) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(site_.host->size()));
    site_.host->all_gather(&mine, all.data(), 1, DType::int64);
    return *std::max_element(all.begin(), all.end());
  }

  json run_transport(ReshardTransport transport) {
    synchronize(site_.device);
    if (site_.gpu()) c10::cuda::CUDACachingAllocator::emptyCache();
    const std::int64_t free_before = site_.free_bytes();
    const auto weight_reshard = rig_.make_reshard({.transport = transport});
    rig_.poison();
    rig_.write(1);
    const ReshardReport first = weight_reshard->run();
    const std::int64_t wrong = rig_.wrong_in_rollout(1);
    const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                       [&] { return weight_reshard->run().seconds; });
    synchronize(site_.device);
    if (site_.gpu()) c10::cuda::CUDACachingAllocator::emptyCache();
    json row = timing_json(timing, static_cast<double>(received_));
    row["wrong_elements"] = wrong;
    row["received_bytes"] = most(first.received);
    row["transport"] = name_of(weight_reshard->transport());
    row["extra_bytes"] = most(std::max<std::int64_t>(
        {free_before - site_.free_bytes(), weight_reshard->buffer_bytes(), 0}));
    return row;
  }

  /// Training slots are views, or copies of their own that no reshard overwrites.
  json way_back() {
    const std::int64_t wrong = rig_.wrong_in_training(1);
    const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
      const Stopwatch watch;
      synchronize(site_.device);
      signals_.barrier();
      return watch.seconds();
    });
    return {{"seconds", timing.median}, {"bytes", 0}, {"wrong_elements", wrong}};
  }

  /// Whose collectives they are.
  std::string library() const { return site_.gpu() ? "nccl" : "host"; }

  bool uses(ReshardTransport transport) const {
    const auto& all = options_.transports;
    return std::find(all.begin(), all.end(), transport) != all.end();
  }

  json practice() {
    json made;
    const auto measure = [&](const char* name, json (CaseBench::*part)()) {
      if (site_.host->rank() == 0) {
        std::fprintf(stderr, "%s->%s: %s\n", which_.from.c_str(), which_.to.c_str(), name);
      }
      made[name] = (this->*part)();
    };
    measure("stream_order", &CaseBench::stream_order);
    if (site_.host->size() > 1) measure("overlap", &CaseBench::overlap);
    measure("incremental", &CaseBench::incremental);
    measure("copies_of_at_most", &CaseBench::copies);
    measure("pull_order", &CaseBench::pull_orders);
    if (site_.gpu()) measure("merge_below", &CaseBench::merged);
    return made;
  }

  /// NCCL's transports with other bounds of what travels merged; -1 = everything.
  json merged() {
    json made;
    for (const ReshardTransport transport :
         {ReshardTransport::send_recv, ReshardTransport::window}) {
      if (!uses(transport)) continue;
      for (const std::int64_t mib : {0, 1, 4, 16, 64, -1}) {
        const auto weight_reshard = rig_.make_reshard(
            {.transport = transport,
             .merge_below = mib < 0 ? std::numeric_limits<std::int64_t>::max() : mib << 20});
        weight_reshard->run();
        const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                           [&] { return weight_reshard->run().seconds; });
        json& row = made[std::string(name_of(transport))][std::to_string(mib) + "_mib"];
        row = timing_json(timing, static_cast<double>(received_));
        row["stage_bytes"] = weight_reshard->buffer_bytes();
      }
    }
    return made;
  }

  ReshardTransport reading() const {
    return site_.gpu() ? ReshardTransport::copy_engine : ReshardTransport::host;
  }

  /// A reshard right after writes that wait behind long work on the stream.
  json stream_order() {
    const auto weight_reshard = rig_.make_reshard({.transport = reading()});
    const std::int64_t n = site_.gpu() ? 8192 : 256;
    const auto options = torch::TensorOptions()
                             .dtype(site_.gpu() ? torch::kBFloat16 : torch::kFloat)
                             .device(site_.device);
    const torch::Tensor a = torch::randn({n, n}, options);
    std::int64_t wrong = 0;
    for (int version = 2; version < 5; ++version) {
      torch::Tensor b = a;
      for (int i = 0; i < 40 && site_.host->rank() == version % site_.host->size(); ++i) {
        b = torch::mm(a, b);
      }
      rig_.write(version);
      weight_reshard->run();
      wrong += rig_.wrong_in_rollout(version);
    }
    return {{"switches", 3}, {"wrong_elements", wrong}};
  }

  /// Beside the optimizer's step. The links' time is that of pulls measured here.
  json overlap() {
    const json ceiling = ceilings_.pull(received_, site_.gpu());
    const double rate = ceiling["gb_per_s"].get<double>() * 1e9;
    return bench_overlap(site_, table_, rig_,
                         {.dtype = options_.dtype,
                          .transport = reading(),
                          .repetitions = options_.repetitions,
                          .wire_s = static_cast<double>(busiest_end_) / rate});
  }

  /// All peers at once, and one at a time.
  json pull_orders() {
    json made;
    for (const auto& [name, order] :
         {std::pair("together", PullOrder::together), std::pair("in_steps", PullOrder::in_steps)}) {
      const auto weight_reshard = rig_.make_reshard({.transport = reading(), .pulls = order});
      weight_reshard->run();
      made[name] = timing_json(timed_on_all(*site_.host, options_.repetitions,
                                            [&] { return weight_reshard->run().seconds; }),
                               static_cast<double>(received_));
    }
    return made;
  }

  /// Nothing changed, then one layer did.
  json incremental() {
    const auto weight_reshard =
        rig_.make_reshard({.transport = reading(), .incremental = true, .verify = true});
    rig_.write(8);
    const ReshardReport all = weight_reshard->run();
    const ReshardReport none = weight_reshard->run();
    for (std::size_t i = 0; i < rig_.arena().training.slots.size(); ++i) {
      const int tensor = rig_.arena().training.slots[i].tensor;
      if (table_.rows[static_cast<std::size_t>(tensor)].layer == 0) rig_.write_slot(i, 9);
    }
    const ReshardReport layer = weight_reshard->run();
    const auto plain = rig_.make_reshard({.transport = reading(), .incremental = true});
    plain->run();
    const ReshardReport unverified = plain->run();
    return {{"nothing_unverified", {{"seconds", unverified.seconds}}},
            {"all", {{"received_bytes", all.busiest}, {"seconds", all.seconds}}},
            {"nothing", {{"received_bytes", none.busiest}, {"seconds", none.seconds}}},
            {"one_layer", {{"received_bytes", layer.busiest}, {"seconds", layer.seconds}}},
            {"checksums_equal", layer.verified}};
  }

  /// Times the reshard in copies of bounded size.
  json copies() {
    json made;
    for (const std::int64_t mib : {16, 64, 256}) {
      const auto weight_reshard =
          rig_.make_reshard({.transport = reading(), .copy_bytes = mib << 20});
      weight_reshard->run();
      const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                         [&] { return weight_reshard->run().seconds; });
      made[std::to_string(mib) + "_mib"] = timing_json(timing, static_cast<double>(received_));
    }
    return made;
  }

  /// Times what the machine gives for these bytes, received in one piece per peer.
  json ceilings() {
    json made;
    const int ranks = site_.host->size();
    const std::int64_t model = table_.elements() * size_of(options_.dtype);
    if (ranks == 1) return made;
    const std::int64_t large = std::min<std::int64_t>(std::int64_t{6} << 30, 2 * model);
    made["pull_same_bytes"] = ceilings_.pull(received_);
    made["pull_large"] = ceilings_.pull(site_.gpu() ? large : received_);
    if (site_.gpu()) made["pull_in_steps"] = ceilings_.pull(received_, true);
    made[library() + "_all_gather_same_bytes"] = ceilings_.gather(received_);
    if (uses(ReshardTransport::send_recv)) {
      made[library() + "_send_recv_same_traffic"] = ceilings_.messages(traffic_, received_);
    }
    made["gather_whole_model"] = ceilings_.gather(model / ranks * (ranks - 1));
    return made;
  }

  const BenchSite& site_;
  const ReshardBenchOptions& options_;
  ParameterTable table_;
  ReshardCase which_;
  ReshardMaps maps_;
  ReshardRig rig_;
  ReshardCeilings ceilings_;
  HostSignals signals_;
  PullTraffic traffic_;
  std::int64_t received_ = 0, busiest_end_ = 0;
};

}  // namespace

json bench_reshard(const BenchSite& site, const ModelSpec& model, const ReshardCase& which,
                   const ReshardBenchOptions& options) {
  return CaseBench(site, model, which, options).run();
}

}  // namespace tessera
