// Published times of trainer-to-rollout weight synchronisation beside two floors of ours: the whole
// model through one sender's network card, which is how verl's NCCL engine sends it, and the
// minimal reshard. What lies above the floor is software (gathers tensor by tensor, packing,
// loading): of verl's checkpoint engine a time for each tensor (HandoverTraits).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "cost_models/collective.h"
#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/model_spec.h"
#include "planner/engines/engine.h"

namespace tessera {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/validation/data";

struct Sync {
  std::string model;
  int train = 0, gen = 0;
  bool checkpoint_engine = false;
  double measured = 0, whole = 0, minimal = 0;  // seconds
  double software = 0;                          // of a checkpoint engine, seconds
  bool one_node = false;
};

ModelSpec model_of(const std::string& name) {
  static const std::map<std::string, std::string> presets = {
      {"Qwen2.5-Math-7B", "qwen2.5-7b"},  {"Qwen2.5-7B", "qwen2.5-7b"},
      {"Qwen2.5-32B", "qwen2.5-32b"},     {"Qwen2.5-72B", "qwen2.5-72b"},
      {"Qwen3-30B-A3B", "qwen3-30b-a3b"}, {"Qwen3-235B-A22B", "qwen3-235b-a22b"}};
  Problems problems;
  return read_model_spec(presets.at(name), problems).value();
}

std::vector<Sync> syncs(const std::string& file) {
  Problems problems;
  const CsvTable table = read_csv(kData / file, problems).value();
  std::vector<Sync> rows;
  for (const CsvRow& row : table.rows) {
    const auto cell = [&](const char* name) { return row.cells[*table.column(name)]; };
    const ClusterSpec cluster = *read_cluster_spec(kData / cell("cluster"), problems);
    const Calibration calibration = *calibration_for_cluster(cluster, problems);
    Sync sync{.model = cell("model"),
              .train = std::atoi(cell("train_gpus").c_str()),
              .gen = std::atoi(cell("gen_gpus").c_str()),
              .checkpoint_engine = cell("checkpoint_engine") == "1",
              .measured = std::strtod(cell("measured_sync_s").c_str(), nullptr)};
    const ModelSpec model = model_of(sync.model);
    const double bytes = 2.0 * static_cast<double>(parameter_count(model));
    const bool one_node = sync.train + sync.gen <= cluster.gpus_per_node;
    const auto moved = [&](double received) {
      return one_node ? reshard_seconds(Traffic{received}, {}, 1, cluster, calibration)
                      : reshard_seconds({}, Traffic{received}, 1, cluster, calibration);
    };
    sync.whole = moved(bytes);
    // A rollout rank needs its part of a model that the trainer's ranks send together.
    const int parts = std::min<int>(sync.gen, static_cast<int>(cluster.gpus_per_node));
    sync.minimal = moved(bytes / parts);
    sync.one_node = one_node;
    if (sync.checkpoint_engine) {
      sync.software = traits_of("verl").handover.broadcast_tensor *
                      static_cast<double>(parameter_table(model).rows.size());
    }
    rows.push_back(sync);
  }
  EXPECT_TRUE(problems.empty());
  return rows;
}

TEST(Validation, WeightSynchronisationTimes) {
  std::printf("Weight synchronisation, verl\n");
  std::vector<Sync> all = syncs("weight_sync.csv");
  const std::size_t paired = all.size();
  for (const Sync& sync : syncs("weight_sync_more.csv")) all.push_back(sync);
  double mean = 0;
  for (const Sync& sync : all) {
    const double error = sync.whole / sync.measured - 1;
    mean += std::abs(error) / static_cast<double>(all.size());
    std::printf(
        "  %-18s %3d -> %3d  measured %7.2f s, whole model by one sender %7.3f s (%+6.1f %%)"
        ", minimal reshard %7.3f s, with software %7.3f s (%+6.1f %%)\n",
        sync.model.c_str(), sync.train, sync.gen, sync.measured, sync.whole, 100 * error,
        sync.minimal, sync.whole + sync.software,
        100 * ((sync.whole + sync.software) / sync.measured - 1));
    EXPECT_LT(sync.minimal, sync.whole);
    EXPECT_LT(sync.minimal, sync.measured);
  }
  std::printf("  %zu rows, mean distance from the floor %.1f %%\n", all.size(), 100 * mean);
  // Across nodes nothing published is faster than the wire, and the order of models is kept.
  ASSERT_EQ(paired, 6U);
  for (std::size_t i = 2; i < all.size(); ++i) EXPECT_LT(all[i].whole, all[i].measured) << i;
  EXPECT_LT(all[1].whole, all[3].whole);
  EXPECT_LT(all[3].whole, all[5].whole);
}

// Models of experts over the network, whose many tensors decide. Left out: 7B within a node (0.02 s
// published, less than its tensors take anywhere else) and machines that are not stated.
TEST(Validation, CheckpointEnginesTakeWhatTheirTensorsTake) {
  std::vector<Sync> all = syncs("weight_sync.csv");
  all.push_back(syncs("weight_sync_more.csv").front());
  int compared = 0;
  for (const Sync& sync : all) {
    if (!sync.checkpoint_engine || sync.one_node) continue;
    ++compared;
    EXPECT_NEAR((sync.whole + sync.software) / sync.measured, 1, 0.3) << sync.model;
  }
  EXPECT_EQ(compared, 3);
}

}  // namespace
}  // namespace tessera
