// Reshards with casts: on the wire, and from master weights to the rollout's type.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "executor/comm/thread_communicator.h"
#include "executor/reshard/weight_reshard.h"
#include "tests/executor/reshard/reshard_cases.h"

namespace tessera {
namespace {

using reshard_cases::Rig;

/// A float's value after a trip through bf16, by Eigen.
float through_bf16(float value) { return static_cast<float>(static_cast<Eigen::bfloat16>(value)); }

TEST(WeightReshard, CastsOnTheWireRoundEveryElementOnceAndReportTheError) {
  const ModelSpec model = odd_model(4);
  const ParameterTable table = parameter_table(model);
  for (const ReshardTransport transport : {ReshardTransport::host, ReshardTransport::send_recv}) {
    run_ranks(4, [&](Communicator& world) {
      Rig rig(world, table, contiguous(layout_of(2, 2, 1, model.layers)),
              contiguous(layout_of(2, 1, 2, model.layers)),
              {.transport = transport,
               .bucket_bytes = 1500,
               .wire = DType::bf16,
               .wire_from = 1,
               .verify = true});
      auto* weights = reinterpret_cast<float*>(rig.source());
      const auto value = [](std::int32_t fingerprint) {
        return std::sin(static_cast<float>(fingerprint));
      };
      for (std::size_t i = 0; i < rig.source_elements(); ++i) weights[i] = value(rig.source()[i]);
      for (int turn = 0; turn < 2; ++turn) {
        const ReshardReport report = rig.weight_reshard->run();
        EXPECT_TRUE(report.verified);
        double squared = 0, norm = 0;
        for (std::size_t i = 0; i < rig.expected.size() / 4; ++i) {
          std::int32_t fingerprint = 0;
          std::memcpy(&fingerprint, rig.expected.data() + 4 * i, 4);
          if (fingerprint == 0) continue;  // between slots
          const float exact = value(fingerprint);
          const float wanted = turn == 0 ? exact : through_bf16(exact);
          float found = 0;
          std::memcpy(&found, rig.landed.data() + 4 * i, 4);
          ASSERT_EQ(found, wanted) << "element " << i << " turn " << turn;
          squared += std::pow(wanted - exact, 2), norm += std::pow(exact, 2);
        }
        const std::int64_t plain = rig.reshard.plan().bytes_received.value;
        EXPECT_EQ(report.busiest, turn == 0 ? plain : plain / 2);
        if (turn == 0) {
          EXPECT_EQ(report.cast_error, 0);
        } else {
          EXPECT_NEAR(report.cast_error, std::sqrt(squared / norm), 0.1 * report.cast_error);
        }
      }
      // Two halves per buffer, each no larger than the bound but for one row and the alignment.
      EXPECT_LE(rig.weight_reshard->buffer_bytes(), 2 * 2 * (2 * 1500 + 40 * 256));
    });
  }
}

TEST(WeightReshard, CastsFromMasterWeightsToTheRolloutsType) {
  const ModelSpec model = even_model(2);
  const ParameterTable table = parameter_table(model);
  const RankMap from = contiguous(layout_of(1, 1, 1, model.layers, 4));
  const RankMap to = contiguous(layout_of(2, 1, 2, model.layers));
  run_ranks(4, [&](Communicator& world) {
    const Reshard masters(table, from, to, DType::fp32, ReshardMode::minimal, world.rank());
    const Reshard rollout(table, from, to, DType::bf16, ReshardMode::minimal, world.rank());
    std::vector<float> source(static_cast<std::size_t>(masters.source()->bytes / 4));
    const std::vector<std::byte> marks = expected_arena(table, *masters.source());
    for (std::size_t i = 0; i < source.size(); ++i) {
      std::int32_t mark = 0;
      std::memcpy(&mark, marks.data() + 4 * i, 4);
      source[i] = std::sin(static_cast<float>(mark));
    }
    std::vector<Eigen::bfloat16> landed(static_cast<std::size_t>(rollout.destination()->bytes / 2));
    PlacedReshard plan = masters.placed();
    plan.destination = rollout.placed().destination;
    plan.destination_type = DType::bf16;
    WeightReshard weight_reshard(
        std::move(plan),
        {.world = &world, .host = &world, .source = source.data(), .destination = landed.data()},
        {.wire = DType::bf16});
    weight_reshard.run();
    const std::vector<std::byte> wanted = expected_arena(table, *masters.destination());
    for (const ArenaSlot& slot : rollout.destination()->slots) {
      const ArenaSlot& wide = masters.destination()->slots[static_cast<std::size_t>(
          masters.destination()->slot_of[static_cast<std::size_t>(slot.tensor)])];
      for (std::int64_t i = 0; i < slot.range.bytes / 2; ++i) {
        std::int32_t mark = 0;
        std::memcpy(&mark, wanted.data() + wide.range.offset + 4 * i, 4);
        ASSERT_EQ(static_cast<float>(landed[static_cast<std::size_t>(slot.range.offset / 2 + i)]),
                  through_bf16(std::sin(static_cast<float>(mark))));
      }
    }
  });
}

}  // namespace
}  // namespace tessera
