// Moves weights of one's own from training shards to serving replicas, again and again, with the
// options that a training loop wants: checksums, only what changed, and tensors that leave while
// later ones are still being written.
//
// Eight layers, each [16, 4], are cut by rows over four training ranks; ranks 0 and 2 serve all of
// them. Ranks here are threads that read one another's memory. With MPI processes only the
// communicator differs, with GPUs also who makes the memory (make_device_block) and the copies
// (make_device_copies).
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/thread_communicator.h"
#include "executor/reshard/weight_reshard.h"

namespace {

using tessera::Box;
using tessera::ByteRange;

constexpr int kRanks = 4, kLayers = 8;
constexpr std::int64_t kRows = 16, kWidth = 4, kFloat = sizeof(float);
constexpr std::int64_t kRowBytes = kWidth * kFloat, kOwnRows = kRows / kRanks;

std::vector<tessera::ShardedTensor> layers() {
  std::vector<tessera::ShardedTensor> made;
  for (int layer = 0; layer < kLayers; ++layer) {
    tessera::ShardedTensor tensor{.name = "layer " + std::to_string(layer),
                                  .shape = {kRows, kWidth},
                                  .element_bytes = tessera::Bytes{kFloat}};
    const Box all = tessera::whole(tensor.shape);
    for (int rank = 0; rank < kRanks; ++rank) {
      tensor.source.push_back(
          {rank, tessera::restricted(all, 0, {rank * kOwnRows, (rank + 1) * kOwnRows})});
    }
    tensor.destination = {{0, all}, {2, all}};
    made.push_back(tensor);
  }
  return made;
}

/// Layer after layer; a rank's first row is `first_row`.
std::vector<ByteRange> place(int tensor, const Box& box, std::int64_t first_row,
                             std::int64_t rows) {
  return {
      {(tensor * rows + box.dims[0].lo - first_row) * kRowBytes, box.dims[0].size() * kRowBytes}};
}

float value_of(int version, int layer, std::int64_t element) {
  return static_cast<float>(10000 * version + 100 * layer + element);
}

/// One rank: its shard, its serving copy, and the reshard between them.
class Rank {
 public:
  Rank(tessera::Communicator& world, const tessera::WeightReshardOptions& options)
      : world_(world),
        block_(tessera::make_host_block(kLayers * kOwnRows * kRowBytes)),
        serving_(static_cast<std::size_t>(kLayers * kRows * kWidth)),
        copies_(tessera::make_host_copies()) {
    tessera::PlacedReshard plan{.plan = tessera::plan_reshard(layers()),
                                .tensors = layers(),
                                .source_type = tessera::DType::fp32,
                                .destination_type = tessera::DType::fp32};
    plan.source = [](int rank, int tensor, const Box& box) {
      return place(tensor, box, rank * kOwnRows, kOwnRows);
    };
    plan.destination = [](int tensor, const Box& box) { return place(tensor, box, 0, kRows); };
    reshard_ = std::make_unique<tessera::WeightReshard>(
        plan,
        tessera::ReshardSite{.world = &world,
                             .host = &world,
                             .block = block_.get(),
                             .source = block_->data(),
                             .destination = serving_.data(),
                             .copies = copies_.get()},
        options);
  }

  /// What an optimizer would do.
  void write(int layer, int version) {
    float* mine = static_cast<float*>(block_->data()) + layer * kOwnRows * kWidth;
    const std::int64_t first = world_.rank() * kOwnRows * kWidth;
    for (std::int64_t i = 0; i < kOwnRows * kWidth; ++i) {
      mine[i] = value_of(version, layer, first + i);
    }
  }

  bool serves(int layer, int version) const {
    if (world_.rank() % 2 != 0) return true;  // serves nothing
    bool right = true;
    for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
      const auto at = static_cast<std::size_t>(layer * kRows * kWidth + i);
      right = right && serving_[at] == value_of(version, layer, i);
    }
    return right;
  }

  tessera::WeightReshard& weights() { return *reshard_; }

 private:
  tessera::Communicator& world_;
  std::unique_ptr<tessera::SharedBlock> block_;
  std::vector<float> serving_;
  std::unique_ptr<tessera::BlockCopies> copies_;
  std::unique_ptr<tessera::WeightReshard> reshard_;
};

void say(tessera::Communicator& world, bool right, const char* what, std::int64_t bytes) {
  std::int32_t wrong = right ? 0 : 1;
  world.all_reduce(&wrong, 1, tessera::DType::int32, tessera::ReduceOp::sum);
  if (world.rank() != 0) return;
  std::printf("%s: %lld bytes to the busiest rank, %s\n", what, static_cast<long long>(bytes),
              wrong == 0 ? "every element is right" : "WRONG");
}

void changed_only(tessera::Communicator& world) {
  Rank rank(world,
            {.transport = tessera::ReshardTransport::host, .incremental = true, .verify = true});
  for (int layer = 0; layer < kLayers; ++layer) rank.write(layer, 1);
  const std::int64_t first = rank.weights().run().busiest;
  say(world, rank.serves(0, 1) && rank.serves(7, 1), "first reshard, checksums compared", first);
  rank.write(5, 2);
  const std::int64_t second = rank.weights().run().busiest;
  say(world, rank.serves(5, 2) && rank.serves(7, 1), "one layer changed", second);
}

/// The same bytes as messages, one between two ranks in every round.
void by_messages(tessera::Communicator& world) {
  Rank rank(world, {.transport = tessera::ReshardTransport::send_recv, .bucket_bytes = 400});
  for (int layer = 0; layer < kLayers; ++layer) rank.write(layer, 1);
  const std::int64_t bytes = rank.weights().run().busiest;
  bool right = true;
  for (int layer = 0; layer < kLayers; ++layer) right = right && rank.serves(layer, 1);
  say(world, right, "merged messages", bytes);
}

void overlapped(tessera::Communicator& world) {
  Rank rank(world, {.transport = tessera::ReshardTransport::host,
                    .pulls = tessera::PullOrder::in_steps,
                    .overlap = true});
  bool right = true;
  std::int64_t bytes = 0;
  for (int version = 1; version <= 100; ++version) {
    rank.weights().begin();
    for (int layer = 0; layer < kLayers; ++layer) {
      rank.write(layer, version);
      rank.weights().written(std::vector<int>{layer});  // it may leave
    }
    bytes = rank.weights().finish().busiest;
    for (int layer = 0; layer < kLayers; ++layer) right = right && rank.serves(layer, version);
    world.barrier();  // everybody has looked before anybody writes again
  }
  say(world, right, "100 reshards beside the writing", bytes);
}

}  // namespace

int main() {
  tessera::run_ranks(kRanks, changed_only);
  tessera::run_ranks(kRanks, by_messages);
  tessera::run_ranks(kRanks, overlapped);
  return 0;
}
