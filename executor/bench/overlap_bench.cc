#include "executor/bench/overlap_bench.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/documents/check.h"
#include "executor/comm/stopwatch.h"
#include "executor/kernels/kernels.h"
#include "executor/measure/device_timing.h"
#include "executor/measure/timing.h"
#include "executor/reshard/gpu_site.h"
#include "executor/sharding/shard_map.h"
#include "executor/storage/host_signals.h"
#include "executor/tensor/placed_chunks.h"
#include "executor/tensor/torch_memory_ops.h"

namespace tessera {
namespace {

using nlohmann::json;
using torch::Tensor;

constexpr std::int64_t kChunkBytes = sizeof(kernels::FlatChunk);

/// The slots that are updated together, and their order.
struct UpdateOrder {
  std::vector<std::vector<std::size_t>> slots;  // of this rank
  std::vector<int> tensors;                     // of all ranks
};

/// As the trainer's (update_order). `head_last`: in the order of the forward pass.
UpdateOrder order_of(const ParameterTable& table, const ArenaLayout& arena, bool head_last) {
  UpdateOrder order{.slots = {}, .tensors = update_order(table)};
  const auto is_head = [&](int tensor) {
    return table.rows[static_cast<std::size_t>(tensor)].place == StagePlace::head;
  };
  if (head_last) {
    std::stable_partition(order.tensors.begin(), order.tensors.end(),
                          [&](int tensor) { return !is_head(tensor); });
  }
  std::tuple<std::int64_t, bool> last{-2, false};
  for (const int tensor : order.tensors) {
    const auto t = static_cast<std::size_t>(tensor);
    if (arena.slot_of[t] < 0) continue;
    const std::tuple<std::int64_t, bool> now{table.rows[t].layer, is_head(tensor)};
    if (std::exchange(last, now) != now) order.slots.emplace_back();
    order.slots.back().push_back(static_cast<std::size_t>(arena.slot_of[t]));
  }
  return order;
}

/// How the optimizer's kernels run beside the copies.
struct Beside {
  const UpdateOrder* order = nullptr;
  PullOrder pulls = PullOrder::automatic;
  std::int64_t chunk = kernels::kLargestChunk;  // elements of one block of threads
  std::int64_t chunks_at_once = 0;              // of one launch; 0 = all that is updated together
};

/// The weights lie in memory of their own, or `nested` in the rollout's, as a run's that keeps the
/// rollout's memory. One launch updates what is updated together, as the trainer does.
class OverlapBench {
 public:
  OverlapBench(const BenchSite& site, const ParameterTable& table, ReshardRig& rig,
               const OverlapBenchOptions& options, bool nested)
      : site_(site),
        rig_(rig),
        options_(options),
        nested_(nested),
        signals_(*site.host),
        source_(*rig.reshard().source()),
        block_(site.make_block(nested ? 0 : source_.bytes)),
        copies_(site.make_copies()),
        ops_(make_torch_memory_ops(site.gpu() ? site.device.index() : -1)),
        trainers_(order_of(table, source_, false)),
        head_last_(order_of(table, source_, true)) {
    const auto device = torch::TensorOptions().device(site.device);
    const std::int64_t count = source_.bytes / size_of(options.dtype);
    const auto type = options.dtype == DType::bf16 ? torch::kBFloat16 : torch::kFloat;
    weights_ = torch::from_blob(nested ? rig.block().data() : block_->data(),
                                {nested ? rig.arena().bytes / size_of(options.dtype) : count},
                                device.dtype(type));
    master_ = torch::rand({count}, device);
    gradient_ = torch::rand({count}, device);
    exp_avg_ = torch::zeros({count}, device);
    exp_avg_sq_ = torch::zeros({count}, device);
    squares_ = torch::ones({}, device);
    fused_ = fused::usable(master_) && options.dtype == DType::bf16;
    for (std::size_t slot = 0; slot < source_.slots.size(); ++slot) everything_.push_back(slot);
  }

  json run() {
    const auto behind = make_reshard({.transport = options_.transport});
    constexpr std::int64_t kShort = 1 << 14;
    const Beside at_once{.order = &trainers_};
    const auto whole_step = [&] { update(everything_, at_once); };
    const double alone = time(whole_step);
    const double only = time([&] { behind->run(); });
    const double serial = time([&] {
      whole_step();
      behind->run();
    });
    json made = beside({.order = &trainers_, .chunk = kShort}, alone);
    made["together"] =
        beside({.order = &trainers_, .pulls = PullOrder::together, .chunk = kShort}, alone);
    made["head_last"] = beside({.order = &head_last_, .chunk = kShort}, alone);
    if (fused_) {
      made["long_chunks"] = beside({.order = &trainers_}, alone);
      for (const std::int64_t chunks : {264, 528, 792}) {
        made["chunks_at_once_" + std::to_string(chunks)] =
            beside({.order = &trainers_, .chunk = kShort, .chunks_at_once = chunks}, alone);
      }
    }
    made.update({{"optimizer_s", alone},
                 {"optimizer_gb_per_s", static_cast<double>(30 * master_.numel()) * 1e-9 / alone},
                 {"switch_s", only},
                 {"optimizer_then_switch_s", serial},
                 {"wire_s", options_.wire_s},
                 {"memory_s", slowest(*site_.host, alone * memory_traffic())},
                 {"bound_s", std::max(alone, options_.wire_s)},
                 {"bound_exposed_s", std::max(0.0, options_.wire_s - alone)},
                 {"bound_by", options_.wire_s > alone ? "links" : "optimizer"},
                 {"wrong_elements", wrong_elements()}});
    return made;
  }

 private:
  std::unique_ptr<WeightReshard> make_reshard(const WeightReshardOptions& options) {
    if (nested_) return rig_.make_reshard(options);
    ReshardSite at{.world = site_.world,
                   .host = site_.host,
                   .block = block_.get(),
                   .source = block_->data(),
                   .destination = rig_.block().data(),
                   .copies = copies_.get(),
                   .ops = ops_.get()};
    if (site_.gpu()) complete_on_gpu(at, site_.device.index());
    PlacedReshard plan = rig_.reshard().placed();
    return std::make_unique<WeightReshard>(std::move(plan), at, options);
  }

  ByteRange range(std::size_t slot) const { return source_.slots[slot].range; }
  std::int64_t first(std::size_t slot) const {
    return range(slot).offset / size_of(options_.dtype);
  }
  std::int64_t count(std::size_t slot) const { return range(slot).bytes / size_of(options_.dtype); }

  /// Bytes that step and reshard together move through this rank's memory, against the step alone:
  /// where AdamW already moves all that memory gives, the least time of both.
  double memory_traffic() const {
    const RankTraffic& mine =
        rig_.reshard().plan().traffic[static_cast<std::size_t>(site_.host->rank())];
    const Bytes copied = mine.received + mine.sent + (nested_ ? Bytes{} : 2 * mine.kept);
    return 1 + static_cast<double>(copied.value) / static_cast<double>(30 * master_.numel());
  }

  Tensor part(const Tensor& x, std::size_t slot) const {
    return x.narrow(0, first(slot), count(slot));
  }

  /// Where the slot begins in weights_.
  std::int64_t place(std::size_t slot) const {
    if (!nested_) return first(slot);
    return rig_.arena().training.slots[slot].range.offset / size_of(options_.dtype);
  }

  Tensor weights_of(std::size_t slot) const { return weights_.narrow(0, place(slot), count(slot)); }

  /// Chunks of these slots; made once.
  const Tensor& table_of(std::span<const std::size_t> slots, std::int64_t chunk) {
    Tensor& table = tables_[{slots.front(), slots.size(), chunk}];
    if (table.defined()) return table;
    std::vector<fused::PlacedChunk> chunks;
    for (const std::size_t slot : slots) {
      for (std::int64_t done = 0; done < count(slot); done += chunk) {
        chunks.push_back({{.offset = first(slot) + done,
                           .count = std::min(chunk, count(slot) - done),
                           .decay = 0.01},
                          place(slot) - first(slot)});
      }
    }
    return table = fused::placed_chunk_table(chunks, site_.device);
  }

  void launch(const Tensor& table, const Beside& how) {
    const std::int64_t all = table.numel();
    const std::int64_t each = how.chunks_at_once > 0 ? how.chunks_at_once * kChunkBytes : all;
    for (std::int64_t begin = 0; begin < all; begin += each) {
      fused::adamw({.learning_rate = 1e-4, .step = 1},
                   table.narrow(0, begin, std::min(each, all - begin)), squares_, gradient_,
                   master_, exp_avg_, exp_avg_sq_, weights_);
    }
  }

  void update(const std::vector<std::size_t>& together, const Beside& how) {
    if (fused_) return launch(table_of(together, how.chunk), how);
    for (const std::size_t slot : together) {
      Tensor gradient = part(gradient_, slot), master = part(master_, slot);
      Tensor mean = part(exp_avg_, slot), square = part(exp_avg_sq_, slot);
      mean.mul_(0.9).add_(gradient, 0.1);
      square.mul_(0.999).addcmul_(gradient, gradient, 0.001);
      master.addcdiv_(mean, square.sqrt().add_(1e-8), -1e-4);
      weights_of(slot).copy_(master);
    }
  }

  void step(const Beside& how, const std::function<void(std::span<const int>)>& written) {
    for (const std::vector<std::size_t>& together : how.order->slots) {
      update(together, how);
      if (written) written(tensors_of(together));
    }
  }

  std::vector<int> tensors_of(const std::vector<std::size_t>& together) const {
    std::vector<int> tensors;
    for (const std::size_t slot : together) tensors.push_back(source_.slots[slot].tensor);
    return tensors;
  }

  json beside(const Beside& how, double alone) {
    const auto weight_reshard = make_reshard({.transport = options_.transport,
                                              .pulls = how.pulls,
                                              .overlap = true,
                                              .write_order = how.order->tensors});
    const auto one = [&] {
      weight_reshard->begin();
      step(how, [&](std::span<const int> tensors) { weight_reshard->written(tensors); });
      weight_reshard->finish();
    };
    const double together = time(one);
    return {{"overlapped_s", together},
            {"exposed_s", together - alone},
            {"buckets", weight_reshard->buckets()}};
  }

  double time(const std::function<void()>& body) {
    return timed_on_all(*site_.host, options_.repetitions,
                        [&] {
                          synchronize(site_.device);
                          signals_.barrier();
                          const Stopwatch watch;
                          body();
                          synchronize(site_.device);
                          return watch.seconds();
                        })
        .median;
  }

  /// Known values in place of the optimizer's, written just as late; every element is looked at.
  std::int64_t wrong_elements() {
    const auto weight_reshard = make_reshard(
        {.transport = options_.transport, .overlap = true, .write_order = trainers_.tensors});
    std::vector<Tensor> known(source_.slots.size());
    std::int64_t wrong = 0;
    for (int version = 5; version < 8; ++version) {
      rig_.write(version);
      for (const std::size_t slot : everything_) known[slot] = in_rig(slot).clone();
      rig_.poison();
      synchronize(site_.device);
      site_.host->barrier();
      weight_reshard->begin();
      for (const std::vector<std::size_t>& together : trainers_.slots) {
        for (const std::size_t slot : together) weights_of(slot).copy_(known[slot]);
        weight_reshard->written(tensors_of(together));
      }
      weight_reshard->finish();
      wrong += rig_.wrong_in_rollout(version);
    }
    return wrong;
  }

  Tensor in_rig(std::size_t slot) const {
    return torch::from_blob(static_cast<std::byte*>(rig_.block().data()) +
                                rig_.arena().training.slots[slot].range.offset,
                            {count(slot)}, weights_.options());
  }

  const BenchSite& site_;
  ReshardRig& rig_;
  OverlapBenchOptions options_;
  bool nested_;
  HostSignals signals_;
  const ArenaLayout& source_;
  std::unique_ptr<SharedBlock> block_;
  std::unique_ptr<BlockCopies> copies_;
  std::unique_ptr<MemoryOps> ops_;
  UpdateOrder trainers_, head_last_;
  Tensor weights_, master_, gradient_, exp_avg_, exp_avg_sq_, squares_;
  using Key = std::tuple<std::size_t, std::size_t, std::int64_t>;
  std::map<Key, Tensor> tables_;  // by the first slot, their number, and the chunk's elements
  std::vector<std::size_t> everything_;
  bool fused_ = false;
};

}  // namespace

json bench_overlap(const BenchSite& site, const ParameterTable& table, ReshardRig& rig,
                   const OverlapBenchOptions& options) {
  // Every rank of a bench trains.
  TESSERA_CHECK(rig.reshard().source() != nullptr);
  json made = OverlapBench(site, table, rig, options, false).run();
  made["nested"] = OverlapBench(site, table, rig, options, true).run();
  return made;
}

}  // namespace tessera
