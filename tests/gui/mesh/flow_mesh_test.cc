// SPDX-License-Identifier: GPL-3.0-or-later
// What the arrows of a reshard are said to be.
#include "gui/mesh/flow_mesh.h"

#include <gtest/gtest.h>

#include <memory>

#include "gui/reshard/reshard_facts.h"

namespace tessera::gui {
namespace {

// Two ends that send 1 MiB to one another and have 4 each that stay.
std::shared_ptr<const ReshardFacts> facts(bool by_node) {
  constexpr std::int64_t kMiB = 1 << 20;
  ReshardPart part;
  part.flows = {{0, 0, 4 * kMiB}, {0, 1, kMiB}, {1, 0, kMiB}, {1, 1, 4 * kMiB}};
  ReshardFacts all;
  all.parts = {part};
  all.by_node = by_node;
  all.ranks = by_node ? 128 : 2;
  all.ranks_per_node = by_node ? 64 : 2;
  return std::make_shared<const ReshardFacts>(all);
}

TEST(FlowMesh, SaysNothingOfWhatMovesWithinNodesWhereItsFlowsAreBetweenThem) {
  FlowMatrixModel flows;
  FlowMesh mesh(flows);
  mesh.setMesh(2);
  flows.setFacts(facts(false));
  EXPECT_EQ(mesh.caption(), "2 pairs: 2.0 MiB within nodes (blue), 0 B between nodes (orange).");
  flows.setFacts(facts(true));
  EXPECT_EQ(mesh.caption(),
            "2 pairs of nodes: 2.0 MiB between them (orange); what moves within a node is not "
            "drawn.");
  const QString stays = flows.index(0, 0).data(Qt::ToolTipRole).toString();
  EXPECT_FALSE(stays.contains("keeps")) << stays.toStdString();
  EXPECT_TRUE(stays.contains("within it")) << stays.toStdString();
}

}  // namespace
}  // namespace tessera::gui
