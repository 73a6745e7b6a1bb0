// Certificates of reshards on ranks that are threads: nothing is found where nothing is wrong, and
// of ten thousand injected faults every one, with tensor, rank and bytes as memcmp has them.
#include "executor/certificate/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "executor/comm/thread_communicator.h"
#include "executor/reshard/reshard.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/reshard_cases.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

/// The value of an element after `step` updates, as bf16 bits or fp32.
template <class Element>
Element value_of(int tensor, std::int64_t element, int step) {
  std::uint64_t z = static_cast<std::uint64_t>(tensor) * 1000003 +
                    static_cast<std::uint64_t>(element) * 77 + static_cast<std::uint64_t>(step);
  z = (z ^ z >> 33) * 0xFF51AFD7ED558CCDU;
  z = (z ^ z >> 33) * 0xC4CEB9FE1A85EC53U;
  const float value = static_cast<float>(static_cast<std::int64_t>(z >> 40)) * 0x1p-24F - 0.5F;
  if constexpr (std::is_same_v<Element, float>) return value;
  return static_cast<Element>(std::bit_cast<std::uint32_t>(value) >> 16);
}

/// What a slot holds when it holds `box` of the slot's tensor.
template <class Element>
Bytes content(const ParameterTable& table, const ArenaSlot& slot, const Box& box, int step) {
  const std::vector<std::int64_t>& shape = table.rows[static_cast<std::size_t>(slot.tensor)].shape;
  Bytes bytes(static_cast<std::size_t>(volume(box)) * sizeof(Element));
  std::byte* out = bytes.data();
  const bool matrix = shape.size() == 2, transposed = matrix && slot.outer_dim == 1;
  const Interval outer = box.dims[transposed ? 1 : 0];
  const Interval inner = matrix ? box.dims[transposed ? 0 : 1] : Interval{0, 1};
  for (std::int64_t o = outer.lo; o < outer.hi; ++o) {
    for (std::int64_t i = inner.lo; i < inner.hi; ++i, out += sizeof(Element)) {
      const std::int64_t element = !matrix ? o : transposed ? i * shape[1] + o : o * shape[1] + i;
      const auto value = value_of<Element>(slot.tensor, element, step);
      std::memcpy(out, &value, sizeof value);
    }
  }
  return bytes;
}

template <class Element>
Bytes arena_content(const ParameterTable& table, const ArenaLayout& arena, int step) {
  Bytes bytes(static_cast<std::size_t>(arena.bytes));
  for (const ArenaSlot& slot : arena.slots) {
    const Bytes own = content<Element>(table, slot, slot.box, step);
    std::copy(own.begin(), own.end(), bytes.begin() + slot.range.offset);
  }
  return bytes;
}

/// One rank after a reshard of bf16 weights of step 2.
struct Held {
  Held(const ParameterTable& table, const RankMap& from, const RankMap& to, Communicator& world,
       std::int64_t largest)
      : reshard(table, from, to, DType::bf16, ReshardMode::minimal, world.rank()),
        certificate(
            make_certificate(model_tensors(table, from, to, DType::bf16), world.rank(), largest)) {
    if (reshard.source() != nullptr) {
      source = arena_content<std::uint16_t>(table, *reshard.source(), 2);
    }
    if (reshard.destination() != nullptr) {
      landed.resize(static_cast<std::size_t>(reshard.destination()->bytes));
    }
    reshard.run(world, source.data(), landed.data(), nullptr);
  }

  CertificateReport check(Communicator& world) const {
    return check_weights(certificate, {reshard.source(), source.data()},
                         {reshard.destination(), landed.data()}, std::nullopt, host_memory_ops(),
                         world);
  }

  Reshard reshard;
  WeightCertificate certificate;
  Bytes source, landed;
};

enum class Fault { stale_tensor, swapped_slice, missed_bias, flipped_bit, wrong_rank };
constexpr int kFaults = 5;

class Injector {
 public:
  Injector(const ParameterTable& table, const RankMap& to, Held& held, std::mt19937& draw)
      : table_(table), to_(to), held_(held), arena_(*held.reshard.destination()), draw_(draw) {}

  /// Changes the rollout's memory.
  void inject(Fault fault) {
    switch (fault) {
      case Fault::stale_tensor: {
        const ArenaSlot& slot = any_slot();
        return write(slot, content<std::uint16_t>(table_, slot, slot.box, 1));
      }
      case Fault::swapped_slice:
        return swap_slices();
      case Fault::missed_bias: {
        const ArenaSlot& slot = any_vector();
        return write(slot, content<std::uint16_t>(table_, slot, slot.box, 1));
      }
      case Fault::flipped_bit: {
        const ArenaSlot& slot = any_slot();
        const auto at = static_cast<std::size_t>(
            slot.range.offset + static_cast<std::int64_t>(draw_()) % slot.range.bytes);
        held_.landed[at] ^= std::byte{1} << draw_() % 8;
        return;
      }
      case Fault::wrong_rank:
        return take_from_another_rank();
    }
  }

 private:
  const ArenaSlot& any_slot() { return arena_.slots[draw_() % arena_.slots.size()]; }

  /// A bias, or in a model without biases a norm.
  const ArenaSlot& any_vector() {
    std::vector<const ArenaSlot*> vectors;
    for (const ArenaSlot& slot : arena_.slots) {
      if (slot.box.rank == 1) vectors.push_back(&slot);
    }
    return *vectors.at(draw_() % vectors.size());
  }

  void write(const ArenaSlot& slot, const Bytes& bytes) {
    ASSERT_EQ(std::ssize(bytes), slot.range.bytes);
    std::copy(bytes.begin(), bytes.end(), held_.landed.begin() + slot.range.offset);
  }

  /// Two tensors of one size change places, or two rows of one.
  void swap_slices() {
    const ArenaSlot& slot = any_slot();
    for (const ArenaSlot& other : arena_.slots) {
      if (other.tensor == slot.tensor || other.range.bytes != slot.range.bytes) continue;
      return exchange(slot.range.offset, other.range.offset, slot.range.bytes);
    }
    const std::int64_t rows = slot.memory_shape().front(), row = slot.range.bytes / rows;
    if (rows > 1) exchange(slot.range.offset, slot.range.offset + row * (rows - 1), row);
  }
  void exchange(std::int64_t a, std::int64_t b, std::int64_t bytes) {
    const auto first = held_.landed.begin() + a;
    std::swap_ranges(first, first + bytes, held_.landed.begin() + b);
  }

  /// What another rank of the rollout should hold of the tensor, or of the tensor of a layer that
  /// another stage should.
  void take_from_another_rank() {
    const ArenaSlot& slot = any_slot();
    const Parameter& parameter = table_.rows[static_cast<std::size_t>(slot.tensor)];
    for (const RankCoord& coord : to_.coords) {
      const auto box = compute_box(parameter, to_.layout, coord);
      if (!box || *box == slot.box || volume(*box) != volume(slot.box)) continue;
      return write(slot, content<std::uint16_t>(table_, slot, *box, 2));
    }
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const Parameter& other = table_.rows[row];
      if (other.shape != parameter.shape || arena_.slot_of[row] >= 0) continue;
      ArenaSlot taken = slot;
      taken.tensor = static_cast<int>(row);
      return write(slot, content<std::uint16_t>(table_, taken, slot.box, 2));
    }
    write(slot, Bytes(static_cast<std::size_t>(slot.range.bytes)));
  }

  const ParameterTable& table_;
  const RankMap& to_;
  Held& held_;
  const ArenaLayout& arena_;
  std::mt19937& draw_;
};

using Place = std::pair<int, int>;  // rank, tensor

/// Elements of this rank's slots that are not as they were, by memcmp.
std::map<int, ByteRange> changed_bytes(const ArenaLayout& arena, const Bytes& now,
                                       const Bytes& before) {
  std::map<int, ByteRange> changed;
  for (const ArenaSlot& slot : arena.slots) {
    std::int64_t first = -1, last = -1;
    for (std::int64_t at = 0; at < slot.range.bytes; at += 2) {
      const auto place = static_cast<std::size_t>(slot.range.offset + at);
      if (std::memcmp(now.data() + place, before.data() + place, 2) == 0) continue;
      if (first < 0) first = at;
      last = at + 2;
    }
    if (first >= 0) changed[slot.tensor] = {first, last - first};
  }
  return changed;
}

/// Of one rank and tensor, over all blocks.
std::map<Place, ByteRange> found_bytes(const CertificateReport& report) {
  std::map<Place, ByteRange> found;
  for (const WeightDifference& each : report.differences) {
    EXPECT_FALSE(each.trained);
    const auto [place, fresh] = found.try_emplace({each.rank, each.tensor}, each.bytes);
    if (fresh) continue;
    ByteRange& all = place->second;
    const std::int64_t end = std::max(all.offset + all.bytes, each.bytes.offset + each.bytes.bytes);
    all.offset = std::min(all.offset, each.bytes.offset);
    all.bytes = end - all.offset;
  }
  return found;
}

/// Faults on every rank at once, each of the kind that is its turn. Returns how many changed bytes.
int expect_all_found(Communicator& world, const ParameterTable& table, const RankMap& to,
                     Held& held, const Bytes& sound, int turn) {
  const int rank = world.rank();
  std::mt19937 draw(static_cast<unsigned>(turn * 64 + rank));
  if (!sound.empty()) {
    Injector(table, to, held, draw).inject(static_cast<Fault>((turn + rank) % kFaults));
  }
  const CertificateReport report = held.check(world);
  EXPECT_LE(report.differing, kMostDifferences);
  EXPECT_EQ(report.differing, std::ssize(report.differences));
  std::map<int, ByteRange> found;
  for (const auto& [place, bytes] : found_bytes(report)) {
    if (place.first == rank) found.emplace(place.second, bytes);
  }
  std::map<int, ByteRange> changed;
  if (!sound.empty()) changed = changed_bytes(*held.reshard.destination(), held.landed, sound);
  EXPECT_TRUE(found == changed) << "turn " << turn << ", rank " << rank;
  held.landed = sound;
  return changed.empty() ? 0 : 1;
}

struct Pair {
  RankMap from, to;
};

std::vector<Pair> layout_pairs(std::int64_t layers) {
  std::vector<Pair> pairs;
  for (const ParallelLayout& from : reshard_cases::sources(layers)) {
    for (const ParallelLayout& to : four_rank_layouts(layers)) {
      pairs.push_back({contiguous(from), contiguous(to)});
    }
  }
  for (const ParallelLayout& from : {layout_of(2, 1, 1, layers), layout_of(1, 1, 1, layers, 2)}) {
    for (const ParallelLayout& to : {layout_of(1, 1, 2, layers), layout_of(1, 2, 1, layers)}) {
      pairs.push_back({contiguous(from), contiguous(to, 2)});  // on ranks of their own
    }
  }
  return pairs;
}

TEST(Certificate, FindsTenThousandFaultsOfFiveKindsAndNothingElse) {
  std::atomic<int> injected = 0;
  run_ranks(4, [&](Communicator& world) {
    int turn = 0;
    for (const ModelSpec& model : {even_model(4), odd_model(5)}) {
      const ParameterTable table = parameter_table(model);
      for (const Pair& pair : layout_pairs(model.layers)) {
        SCOPED_TRACE(describe(pair.from.layout) + " -> " + describe(pair.to.layout));
        Held held(table, pair.from, pair.to, world, turn % 2 == 0 ? 300 : std::int64_t{1} << 20);
        const CertificateReport clean = held.check(world);
        EXPECT_EQ(clean.differing, 0);
        EXPECT_GT(clean.compared, 0);
        EXPECT_EQ(clean.shared, 0);
        const Bytes sound = held.landed;
        for (int round = 0; round < 25; ++round, ++turn) {
          injected += expect_all_found(world, table, pair.to, held, sound, turn);
        }
      }
    }
  });
  EXPECT_GE(injected, 10'000);
}

TEST(Certificate, NamesTheReplicaOfTheTrainerThatHasOtherWeights) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const RankMap from = contiguous(layout_of(2, 1, 2, model.layers));
  const RankMap to = contiguous(layout_of(1, 1, 4, model.layers));
  run_ranks(4, [&](Communicator& world) {
    Held held(table, from, to, world, std::int64_t{1} << 20);
    const int tensor = *table.find("model.layers.1.mlp.up_proj.weight");
    const ArenaLayout& arena = *held.reshard.source();
    const ArenaSlot& slot =
        arena.slots[static_cast<std::size_t>(arena.slot_of[static_cast<std::size_t>(tensor)])];
    if (world.rank() == 3) {
      held.source[static_cast<std::size_t>(slot.range.offset) + 6] ^= std::byte{1};
    }
    const CertificateReport report = held.check(world);
    ASSERT_EQ(report.differences.size(), 1U);
    EXPECT_EQ(report.differences[0], (WeightDifference{.rank = 3,
                                                       .owner = 1,
                                                       .tensor = tensor,
                                                       .trained = true,
                                                       .bytes = {6, 2},
                                                       .part_bytes = slot.range.bytes}));
    const Error error(ExitCode::check_failed, problems_of(held.certificate, report));
    EXPECT_STREQ(error.what(),
                 "rank 3, trained weights:model.layers.1.mlp.up_proj.weight: found bytes 6 to 7 of "
                 "its 2048 differ, expected what rank 1 trains");
  });
}

TEST(Certificate, TellsTheFirstOfManyDifferencesAndCountsTheRest) {
  const ModelSpec model = even_model(8);
  const ParameterTable table = parameter_table(model);
  const RankMap from = contiguous(layout_of(4, 1, 1, model.layers));
  const RankMap to = contiguous(layout_of(1, 1, 4, model.layers));
  run_ranks(4, [&](Communicator& world) {
    Held held(table, from, to, world, std::int64_t{1} << 20);
    if (world.rank() == 2) {
      held.landed = arena_content<std::uint16_t>(table, *held.reshard.destination(), 1);
    }
    const CertificateReport report = held.check(world);
    EXPECT_GT(report.differing, 100);
    EXPECT_EQ(std::ssize(report.differences), kMostDifferences);
    for (const WeightDifference& each : report.differences) EXPECT_EQ(each.rank, 2);
    const Problems problems = problems_of(held.certificate, report);
    EXPECT_EQ(problems.back().hint, "and " + std::to_string(report.differing - kMostDifferences) +
                                        " more blocks of weights differ");
  });
}

TEST(Certificate, ComparesNothingWhereARolloutLiesInTheMemoryThatIsTrained) {
  const ModelSpec model = odd_model(3);
  const ParameterTable table = parameter_table(model);
  const RankMap map = contiguous(layout_of(2, 1, 1, model.layers));
  run_ranks(2, [&](Communicator& world) {
    const Held held(table, map, map, world, std::int64_t{1} << 20);
    const HeldWeights one{held.reshard.source(), held.source.data()};
    const CertificateReport report =
        check_weights(held.certificate, one, one, std::nullopt, host_memory_ops(), world);
    EXPECT_EQ(report.compared, 0);
    EXPECT_EQ(report.differing, 0);
    std::int64_t all = 0;
    for (int rank = 0; rank < 2; ++rank) {
      const auto arena =
          arena_layout(table, map.layout, map.coords[static_cast<std::size_t>(rank)], DType::bf16);
      for (const ArenaSlot& slot : arena.slots) all += slot.range.bytes;
    }
    EXPECT_EQ(report.shared, all);
    EXPECT_THAT(to_string(report), testing::HasSubstr("nothing to compare"));
  });
}

/// fp32 weights that travelled as 16 bits: the rollout must hold the rounded ones, all their bits.
TEST(Certificate, KnowsWeightsThatWereRoundedOnTheirWay) {
  const ModelSpec model = odd_model(4);
  const ParameterTable table = parameter_table(model);
  for (const DType wire : {DType::bf16, DType::fp16}) {
    run_ranks(4, [&](Communicator& world) {
      const RankMap from = contiguous(layout_of(1, 2, 1, model.layers, 2));
      const RankMap to = contiguous(layout_of(2, 1, 2, model.layers));
      reshard_cases::Rig rig(world, table, from, to, {.wire = wire});
      rig.fill(arena_content<float>(table, *rig.reshard.source(), 2));
      const ReshardReport moved = rig.weight_reshard->run();
      EXPECT_EQ(moved.wire, wire);
      const WeightCertificate certificate =
          make_certificate(model_tensors(table, from, to, DType::fp32), world.rank());
      const auto check = [&](std::optional<DType> through) {
        return check_weights(certificate, {rig.reshard.source(), rig.block->data()},
                             {rig.reshard.destination(), rig.landed.data()}, through,
                             host_memory_ops(), world);
      };
      EXPECT_EQ(check(wire).differing, 0);
      EXPECT_GT(check(std::nullopt).differing, 0);  // they are not what is trained
      const ArenaSlot& slot = rig.reshard.destination()->slots.back();
      auto* const low = rig.landed.data() + slot.range.offset + 8;
      if (world.rank() == 1) *low ^= std::byte{1};  // a bit that no 16-bit type has
      const CertificateReport report = check(wire);
      ASSERT_EQ(report.differences.size(), 1U);
      EXPECT_EQ(report.differences[0].rank, 1);
      EXPECT_EQ(report.differences[0].tensor, slot.tensor);
      EXPECT_EQ(report.differences[0].bytes, (ByteRange{8, 4}));
    });
  }
}

}  // namespace
}  // namespace tessera
