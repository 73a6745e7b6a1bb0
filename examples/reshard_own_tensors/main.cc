// Reshards tensors that have nothing to do with a language model: a table of rows moves from four
// training ranks to two serving ranks, and a bias that ranks 0 and 1 both hold goes to ranks 2
// and 3.
//
// Says where every part is before and after, lets Tessera plan who sends what, prints the plan,
// then executes it on threads through a Communicator and checks every element that arrived. With
// MPI or NCCL only the communicator differs.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/byte_schedule.h"
#include "executor/comm/thread_communicator.h"

namespace {

using tessera::Box;
using tessera::ByteRange;
using tessera::Holding;
using tessera::ShardedTensor;

constexpr int kRanks = 4;
constexpr std::int64_t kFloat = sizeof(float);

Box rows(const ShardedTensor& tensor, std::int64_t first, std::int64_t last) {
  return tessera::restricted(tessera::whole(tensor.shape), 0, {first, last});
}

std::vector<ShardedTensor> own_tensors() {
  ShardedTensor table{.name = "table", .shape = {12, 5}, .element_bytes = tessera::Bytes{kFloat}};
  for (int rank = 0; rank < kRanks; ++rank) {
    table.source.push_back({rank, rows(table, 3 * rank, 3 * rank + 3)});
  }
  table.destination = {{0, rows(table, 0, 7)}, {2, rows(table, 7, 12)}};
  ShardedTensor bias{.name = "bias", .shape = {8}, .element_bytes = tessera::Bytes{kFloat}};
  bias.source = {{0, rows(bias, 0, 8)}, {1, rows(bias, 0, 8)}};
  bias.destination = {{2, rows(bias, 0, 8)}, {3, rows(bias, 0, 8)}};
  return {table, bias};
}

/// One rank's memory for the parts it holds, one after the other; parts are whole rows.
struct Memory {
  std::map<int, std::pair<Box, std::int64_t>> parts;  // by tensor: box, offset in bytes
  std::vector<float> floats;

  Memory(const std::vector<ShardedTensor>& tensors, int rank, bool after) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      for (const Holding& holding : after ? tensors[t].destination : tensors[t].source) {
        if (holding.rank != rank) continue;
        parts[static_cast<int>(t)] = {holding.box,
                                      static_cast<std::int64_t>(floats.size()) * kFloat};
        floats.resize(floats.size() + static_cast<size_t>(tessera::volume(holding.box)));
      }
    }
  }

  ByteRange range(int tensor, const Box& box) const {
    const auto& [held, offset] = parts.at(tensor);
    const std::int64_t row_bytes = tessera::volume(box) / box.dims[0].size() * kFloat;
    return {offset + (box.dims[0].lo - held.dims[0].lo) * row_bytes,
            box.dims[0].size() * row_bytes};
  }

  /// Calls fn(value, its expected value) for every element held.
  template <class Function>
  void each(Function fn) {
    for (auto& [tensor, part] : parts) {
      const auto& [box, offset] = part;
      const std::int64_t width = tessera::volume(box) / box.dims[0].size();
      float* value = floats.data() + offset / kFloat;
      for (std::int64_t i = box.dims[0].lo * width; i < box.dims[0].hi * width; ++i) {
        fn(*value++, static_cast<float>(1000 * tensor + i));
      }
    }
  }
};

bool reshard(const std::vector<ShardedTensor>& tensors, const tessera::ReshardPlan& plan,
             tessera::Communicator& world) {
  Memory before(tensors, world.rank(), false), after(tensors, world.rank(), true);
  before.each([](float& value, float expected) { value = expected; });
  const auto locate = [](const Memory& memory) {
    return [&memory](int tensor, const Box& box) {
      return std::vector<ByteRange>{memory.range(tensor, box)};
    };
  };
  const auto schedule = tessera::compile(plan, world.rank(), locate(before), locate(after));
  tessera::execute(schedule, before.floats.data(), after.floats.data(), world);
  bool right = true;
  after.each([&](float& value, float expected) { right = right && value == expected; });
  return right;
}

}  // namespace

int main() {
  const std::vector<ShardedTensor> tensors = own_tensors();
  const tessera::ReshardPlan plan = tessera::plan_reshard(tensors);
  for (const tessera::Transfer& transfer : plan.transfers) {
    const ShardedTensor& tensor = tensors[static_cast<size_t>(transfer.tensor)];
    const auto& row = transfer.box.dims[0];
    const bool stays = transfer.source == transfer.destination;
    std::printf("%s rows [%lld, %lld): %s %d", tensor.name.c_str(), static_cast<long long>(row.lo),
                static_cast<long long>(row.hi), stays ? "stay on rank" : "rank", transfer.source);
    if (!stays) std::printf(" -> rank %d", transfer.destination);
    std::printf("\n");
  }
  std::printf("busiest rank receives %lld bytes (lower bound %lld), sends %lld (optimum %lld)\n",
              static_cast<long long>(plan.bytes_received.value),
              static_cast<long long>(plan.lower_bound.value),
              static_cast<long long>(plan.bytes_sent.value),
              static_cast<long long>(plan.min_max_sent.value));
  std::vector<char> right(kRanks, 0);
  tessera::run_ranks(kRanks, [&](tessera::Communicator& world) {
    right[static_cast<size_t>(world.rank())] = reshard(tensors, plan, world);
  });
  for (const char good : right) {
    if (!good) return std::printf("a rank holds wrong values\n"), 1;
  }
  std::printf("executed on %d ranks: every element is right\n", kRanks);
  return 0;
}
