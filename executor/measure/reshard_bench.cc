#include "executor/measure/reshard_bench.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cost_models/spec/problem.h"
#include "executor/measure/overlap_bench.h"
#include "executor/measure/timing.h"
#include "executor/reshard/pull_steps.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

json timing_json(const Timing& timing, double bytes) {
  return {{"seconds", timing.median},
          {"seconds_least", timing.least},
          {"seconds_most", timing.most},
          {"gb_per_s", bytes * 1e-9 / timing.median}};
}

RankMap map_of(RankOrder order, const ParallelLayout& layout, std::span<const int> ranks,
               const RankMap* training, Problems& problems) {
  return make_rank_map(order, layout, ranks, training, "bench", problems);
}

/// Coordinates with the replicas fastest: an FSDP shard then lies inside its rank's slice.
std::vector<int> replicas_fastest(const ParallelLayout& layout) {
  std::vector<int> ranks;
  const int model = layout.tp * layout.pp, dp = layout.dp();
  for (int d = 0; d < dp; ++d) {
    for (int m = 0; m < model; ++m) ranks.push_back(m * dp + d);
  }
  return ranks;
}

/// Runs on one case.
class CaseBench {
 public:
  CaseBench(const BenchSite& site, const ModelSpec& model, const ReshardCase& which,
            const ReshardBenchOptions& options)
      : site_(site),
        options_(options),
        table_(parameter_table(model)),
        which_(which),
        signals_(*site.host) {
    Problems problems;
    const int ranks = site.host->size();
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    const ParallelLayout from = read_layout(which.from, model.layers, ranks, problems);
    const ParallelLayout to = read_layout(which.to, model.layers, ranks, problems);
    if (problems.empty()) {
      from_ = map_of(RankOrder::contiguous, from, all, nullptr, problems);
    }
    if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
    to_ = best_rollout_map(table_, from_, to, options.dtype);
    rig_ = std::make_unique<SwitchRig>(site, table_, from_, to_, options.dtype);
    received_ = rig_->reshard().plan().bytes_received.value;
    busiest_end_ = busiest_end(
        traffic_of(rig_->reshard().plan(), rig_->reshard().switch_plan().tensors, ranks));
  }

  json run() {
    const ReshardPlan& plan = rig_->reshard().plan();
    json result{
        {"from", describe(from_.layout)},
        {"to", describe(to_.layout)},
        {"case", which_.from + "->" + which_.to},
        {"model_bytes", table_.elements() * size_of(options_.dtype)},
        {"received_bytes", received_},
        {"lower_bound_bytes", plan.lower_bound.value},
        {"total_received_bytes", plan.total_received.value},
        {"busiest_end_bytes", busiest_end_},
        {"bound_by", busiest_end_ > received_ ? "the busiest sender" : "the busiest receiver"},
        {"rollout_bytes", rig_->arena().rollout.bytes},
        {"held_twice_bytes", most(rig_->arena().held_twice)}};
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

  void synchronize() const {
    if (site_.gpu()) torch::cuda::synchronize(site_.device.index());
  }

  json run_transport(ReshardTransport transport) {
    synchronize();
    if (site_.gpu()) c10::cuda::CUDACachingAllocator::emptyCache();
    const std::int64_t free_before = site_.free_bytes();
    const auto weight_switch = rig_->make_switch({.transport = transport});
    rig_->poison();
    rig_->write(1);
    const ReshardReport first = weight_switch->run();
    const std::int64_t wrong = rig_->wrong_in_rollout(1);
    const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                       [&] { return weight_switch->run().seconds; });
    synchronize();
    if (site_.gpu()) c10::cuda::CUDACachingAllocator::emptyCache();
    json row = timing_json(timing, static_cast<double>(received_));
    row["wrong_elements"] = wrong;
    row["received_bytes"] = most(first.received);
    row["transport"] = name_of(weight_switch->transport());
    row["extra_bytes"] = most(std::max<std::int64_t>(
        {free_before - site_.free_bytes(), weight_switch->buffer_bytes(), 0}));
    return row;
  }

  /// Training slots are views, or copies of their own that no switch overwrites.
  json way_back() {
    const std::int64_t wrong = rig_->wrong_in_training(1);
    const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
      const Clock::time_point begin = Clock::now();
      synchronize();
      signals_.barrier();
      return seconds_since(begin);
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
        const auto weight_switch = rig_->make_switch(
            {.transport = transport,
             .merge_below = mib < 0 ? std::numeric_limits<std::int64_t>::max() : mib << 20});
        weight_switch->run();
        const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                           [&] { return weight_switch->run().seconds; });
        json& row = made[std::string(name_of(transport))][std::to_string(mib) + "_mib"];
        row = timing_json(timing, static_cast<double>(received_));
        row["stage_bytes"] = weight_switch->buffer_bytes();
      }
    }
    return made;
  }

  ReshardTransport reading() const {
    return site_.gpu() ? ReshardTransport::copy_engine : ReshardTransport::host;
  }

  /// A switch right after writes that wait behind long work on the stream.
  json stream_order() {
    const auto weight_switch = rig_->make_switch({.transport = reading()});
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
      rig_->write(version);
      weight_switch->run();
      wrong += rig_->wrong_in_rollout(version);
    }
    return {{"switches", 3}, {"wrong_elements", wrong}};
  }

  /// Beside the optimizer's step. The links' time is that of pulls measured here.
  json overlap() {
    const json ceiling = pull(received_, site_.gpu());
    const double rate = ceiling["gb_per_s"].get<double>() * 1e9;
    return bench_overlap(site_, table_, *rig_,
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
      const auto weight_switch = rig_->make_switch({.transport = reading(), .pulls = order});
      weight_switch->run();
      made[name] = timing_json(timed_on_all(*site_.host, options_.repetitions,
                                            [&] { return weight_switch->run().seconds; }),
                               static_cast<double>(received_));
    }
    return made;
  }

  /// Nothing changed, then one layer did.
  json incremental() {
    const auto weight_switch =
        rig_->make_switch({.transport = reading(), .incremental = true, .verify = true});
    rig_->write(8);
    const ReshardReport all = weight_switch->run();
    const ReshardReport none = weight_switch->run();
    for (std::size_t i = 0; i < rig_->arena().training.slots.size(); ++i) {
      const int tensor = rig_->arena().training.slots[i].tensor;
      if (table_.rows[static_cast<std::size_t>(tensor)].layer == 0) rig_->write_slot(i, 9);
    }
    const ReshardReport layer = weight_switch->run();
    const auto plain = rig_->make_switch({.transport = reading(), .incremental = true});
    plain->run();
    const ReshardReport unverified = plain->run();
    return {{"nothing_unverified", {{"seconds", unverified.seconds}}},
            {"all", {{"received_bytes", all.busiest}, {"seconds", all.seconds}}},
            {"nothing", {{"received_bytes", none.busiest}, {"seconds", none.seconds}}},
            {"one_layer", {{"received_bytes", layer.busiest}, {"seconds", layer.seconds}}},
            {"checksums_equal", layer.verified}};
  }

  /// The same switch in copies of bounded size.
  json copies() {
    json made;
    for (const std::int64_t mib : {16, 64, 256}) {
      const auto weight_switch =
          rig_->make_switch({.transport = reading(), .copy_bytes = mib << 20});
      weight_switch->run();
      const Timing timing = timed_on_all(*site_.host, options_.repetitions,
                                         [&] { return weight_switch->run().seconds; });
      made[std::to_string(mib) + "_mib"] = timing_json(timing, static_cast<double>(received_));
    }
    return made;
  }

  /// What the machine gives for the same bytes, received in one piece per peer.
  json ceilings() {
    json made;
    const int ranks = site_.host->size();
    const std::int64_t model = table_.elements() * size_of(options_.dtype);
    if (ranks == 1) return made;
    const std::int64_t large = std::min<std::int64_t>(std::int64_t{6} << 30, 2 * model);
    made["pull_same_bytes"] = pull(received_);
    made["pull_large"] = pull(site_.gpu() ? large : received_);
    if (site_.gpu()) made["pull_in_steps"] = pull(received_, true);
    made[library() + "_all_gather_same_bytes"] = gather(received_);
    if (uses(ReshardTransport::send_recv)) made[library() + "_send_recv_same_traffic"] = messages();
    made["gather_whole_model"] = gather(model / ranks * (ranks - 1));
    return made;
  }

  /// `in_steps`: from one peer at a time, none read by two.
  json pull(std::int64_t bytes, bool in_steps = false) {
    const int ranks = site_.host->size(), rank = site_.host->rank();
    const std::int64_t part = std::max<std::int64_t>(bytes / (ranks - 1) / 256 * 256, 256);
    const auto source = site_.make_block(part), target = site_.make_block(part * (ranks - 1));
    const PeerBlocks peers(*site_.host, source.get());
    const auto copies = site_.make_copies();
    const auto barrier = in_steps ? site_.make_barrier() : nullptr;
    std::vector<CopyBatch> batches;
    for (int k = 1; k < ranks; ++k) {
      CopyBatch& batch = batches.emplace_back();
      batch.peer = (rank + k) % ranks;
      batch.add(static_cast<std::byte*>(target->data()) + part * (k - 1), peers.at(batch.peer),
                static_cast<std::size_t>(part));
    }
    const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
      signals_.barrier();
      const Clock::time_point begin = Clock::now();
      copies->await_producer();
      signals_.barrier();
      barrier ? copies->start_in_steps(batches, *barrier) : copies->start(batches);
      copies->wait();
      signals_.barrier();
      return seconds_since(begin);
    });
    json made = timing_json(timing, static_cast<double>(part * (ranks - 1)));
    made["received_bytes"] = part * (ranks - 1);
    site_.host->barrier();
    return made;
  }

  /// NCCL's own rate for the switch's traffic: one message from each rank to each.
  json messages() {
    const int ranks = site_.host->size(), rank = site_.host->rank();
    const PullTraffic traffic =
        traffic_of(rig_->reshard().plan(), rig_->reshard().switch_plan().tensors, ranks);
    const auto bytes = torch::TensorOptions().dtype(torch::kUInt8).device(site_.device);
    std::vector<torch::Tensor> memory;
    std::vector<SendBlock> sends;
    std::vector<ReceiveBlock> receives;
    for (int k = 1; k < ranks; ++k) {
      const int to = (rank + k) % ranks, from = (rank - k + ranks) % ranks;
      const std::int64_t out =
          traffic[static_cast<std::size_t>(rank)][static_cast<std::size_t>(to)];
      const std::int64_t in =
          traffic[static_cast<std::size_t>(from)][static_cast<std::size_t>(rank)];
      memory.push_back(torch::zeros({out}, bytes));
      sends.push_back({to, memory.back().data_ptr(), static_cast<std::size_t>(out)});
      memory.push_back(torch::zeros({in}, bytes));
      receives.push_back({from, memory.back().data_ptr(), static_cast<std::size_t>(in)});
    }
    const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
      synchronize();
      signals_.barrier();
      const Clock::time_point begin = Clock::now();
      site_.world->exchange(sends, receives);
      synchronize();
      signals_.barrier();
      return seconds_since(begin);
    });
    return timing_json(timing, static_cast<double>(received_));
  }

  /// One flat all-gather by the world communicator, of so many bytes received.
  json gather(std::int64_t bytes) {
    const int ranks = site_.host->size();
    const std::int64_t part = std::max<std::int64_t>(bytes / (ranks - 1) / 256 * 256, 256);
    torch::Tensor all = torch::empty(
        {part * ranks}, torch::TensorOptions().dtype(torch::kUInt8).device(site_.device));
    auto* data = static_cast<std::byte*>(all.data_ptr());
    const Timing timing = timed_on_all(*site_.host, options_.repetitions, [&] {
      synchronize();
      signals_.barrier();
      const Clock::time_point begin = Clock::now();
      site_.world->all_gather(data + part * site_.host->rank(), data,
                              static_cast<std::size_t>(part), DType::uint8);
      synchronize();
      signals_.barrier();
      return seconds_since(begin);
    });
    json made = timing_json(timing, static_cast<double>(part * (ranks - 1)));
    made["received_bytes"] = part * (ranks - 1);
    return made;
  }

  const BenchSite& site_;
  const ReshardBenchOptions& options_;
  ParameterTable table_;
  ReshardCase which_;
  HostSignals signals_;
  RankMap from_, to_;
  std::unique_ptr<SwitchRig> rig_;
  std::int64_t received_ = 0, busiest_end_ = 0;
};

}  // namespace

ParallelLayout read_layout(const std::string& text, std::int64_t layers, int ranks,
                           Problems& problems) {
  ParallelLayout layout;
  layout.dp_replicate = 0;
  const auto refuse = [&] {
    problems.push_back({.place = "layout",
                        .found = text,
                        .expected = "degrees such as tp4, tp2pp2 or fsdp4 that fit on " +
                                    std::to_string(ranks) + " ranks, and at most " +
                                    std::to_string(layers) + " stages"});
    return ParallelLayout{};
  };
  for (std::size_t i = 0; i < text.size();) {
    std::string name, number;
    for (; i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])); ++i) {
      name += text[i];
    }
    for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i) {
      number += text[i];
    }
    if (number.empty() || number.size() > 4) return refuse();
    const int degree = std::stoi(number);
    int* const field = name == "tp"     ? &layout.tp
                       : name == "pp"   ? &layout.pp
                       : name == "fsdp" ? &layout.dp_shard
                       : name == "dp"   ? &layout.dp_replicate
                                        : nullptr;
    if (field == nullptr || degree < 1) return refuse();
    *field = degree;
  }
  const int each = layout.tp * layout.pp * layout.dp_shard;
  if (layout.dp_replicate == 0) layout.dp_replicate = ranks / each;
  if (each * layout.dp_replicate != ranks || layout.pp > layers) return refuse();
  if (layout.dp_shard > 1) layout.zero = 3;
  layout.stages = even_stages(layers, layout.pp);
  return layout;
}

RankMap best_rollout_map(const ParameterTable& table, const RankMap& training,
                         const ParallelLayout& layout, DType dtype) {
  std::optional<RankMap> best;
  std::int64_t least = 0;
  const auto consider = [&](RankOrder order, std::span<const int> ranks) {
    Problems problems;
    RankMap map = map_of(order, layout, ranks, &training, problems);
    if (!problems.empty()) return;
    const ReshardPlan plan = plan_reshard(model_tensors(table, training, map, dtype));
    if (best && plan.bytes_received.value >= least) return;
    least = plan.bytes_received.value;
    best = std::move(map);
  };
  consider(RankOrder::strided, training.ranks);
  consider(RankOrder::contiguous, training.ranks);
  consider(RankOrder::list, replicas_fastest(layout));
  TESSERA_CHECK(best.has_value());
  return *best;
}

void check_cases(std::span<const ReshardCase> cases, const ModelSpec& model, int ranks) {
  Problems problems;
  for (const ReshardCase& each : cases) {
    for (const std::string& layout : {each.from, each.to}) {
      read_layout(layout, model.layers, ranks, problems);
    }
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
}

json bench_reshard(const BenchSite& site, const ModelSpec& model, const ReshardCase& which,
                   const ReshardBenchOptions& options) {
  return CaseBench(site, model, which, options).run();
}

std::string reshard_table(const json& result) {
  char line[300];
  std::string text;
  const auto milliseconds = [](const json& seconds) { return seconds.get<double>() * 1e3; };
  const auto row = [&](const std::string& name, const json& each, double ceiling) {
    std::snprintf(line, sizeof line, "  %-28s %10.3f ms %8.1f GB/s", name.c_str(),
                  each["seconds"].get<double>() * 1e3, each["gb_per_s"].get<double>());
    text += line;
    if (ceiling > 0) {
      std::snprintf(line, sizeof line, "  %5.1f %% of the pull ceiling",
                    each["gb_per_s"].get<double>() / ceiling * 100);
      text += line;
    }
    if (each.contains("of_bound")) {
      std::snprintf(line, sizeof line, "  %5.1f %% of the bound",
                    each["of_bound"].get<double>() * 100);
      text += line;
    }
    if (each.contains("wrong_elements")) {
      text += each["wrong_elements"] == 0 ? "  exact" : "  WRONG: " + each["wrong_elements"].dump();
    }
    if (each.contains("extra_bytes")) {
      std::snprintf(line, sizeof line, "  +%.1f MiB", each["extra_bytes"].get<double>() / 1048576);
      text += line;
    }
    text += "\n";
  };
  std::snprintf(line, sizeof line, "%s: %.3f GB received by the busiest rank (lower bound %.3f)\n",
                result["case"].get<std::string>().c_str(),
                result["received_bytes"].get<double>() * 1e-9,
                result["lower_bound_bytes"].get<double>() * 1e-9);
  text += line;
  if (result.contains("bound_s")) {
    std::snprintf(line, sizeof line, "  links allow %.3f ms: %.3f GB of %s\n",
                  milliseconds(result["bound_s"]), result["busiest_end_bytes"].get<double>() * 1e-9,
                  result["bound_by"].get<std::string>().c_str());
    text += line;
  }
  double ceiling = 0;
  if (result.contains("ceilings") && result["ceilings"].contains("pull_large")) {
    ceiling = result["ceilings"]["pull_large"]["gb_per_s"];
  }
  for (const auto& [name, each] : result["transports"].items()) row(name, each, ceiling);
  if (ceiling > 0) {
    for (const auto& [name, each] : result["ceilings"].items()) row("(" + name + ")", each, 0);
  }
  std::snprintf(line, sizeof line, "  %-28s %10.3f ms, 0 bytes\n", "way back",
                result["way_back"]["seconds"].get<double>() * 1e3);
  text += line;
  if (result.contains("practice") && result["practice"].contains("overlap")) {
    const json& overlap = result["practice"]["overlap"];
    std::snprintf(line, sizeof line,
                  "  beside the optimizer (%.2f ms)  %10.3f ms, %.2f exposed; at best %.2f, %.2f "
                  "exposed (bound by the %s; memory traffic %.2f); in series %.2f\n",
                  milliseconds(overlap["optimizer_s"]), milliseconds(overlap["overlapped_s"]),
                  milliseconds(overlap["exposed_s"]), milliseconds(overlap["bound_s"]),
                  milliseconds(overlap["bound_exposed_s"]),
                  overlap["bound_by"].get<std::string>().c_str(), milliseconds(overlap["memory_s"]),
                  milliseconds(overlap["optimizer_then_switch_s"]));
    text += line;
  }
  if (result.contains("practice")) text += "  " + result["practice"].dump() + "\n";
  return text;
}

}  // namespace tessera
