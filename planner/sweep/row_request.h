// A sweep's row as a request to the planner: its lengths, its engine's traits, its dataflow.
//
// Pure functions of a row and the models and clusters that it names. Lengths count tokens;
// docs/commands/sweep.md lists the columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/request/request.h"
#include "planner/sweep/sweep_inputs.h"

namespace tessera {

/// Lengths of a row, and how those that it leaves open were filled.
struct RowLengths {
  double prompt = 0, response = 0, cv = 0;
  double unclipped = 0;  // with a spread: the mean that no limit cuts (cost_models/lengths.h)
  std::int64_t max = 0;
  std::string assumed;
};
RowLengths lengths_of(const SweepRow& row);

/// The contradictions of a row with itself or its model: "column: found, expected" for each,
/// joined.
std::string contradictions(const SweepRow& row, const ModelSpec& model, std::int64_t per_node);

/// The reason for which `tessera plan` would refuse a row that generates beyond its model's
/// positions; empty = nothing. Rows that only train or score state their own context: pre-training
/// sets a model's positions.
std::string beyond_positions(const SweepRow& row, const PlanRequest& request);

/// A row that leaves its number of GPUs open, with `scale` times the fewest that its degrees need;
/// nullopt where nothing is open or the cluster has no more.
std::optional<SweepRow> with_gpus(const SweepRow& row, const ClusterSpec& cluster,
                                  std::int64_t scale);

/// True where training and generation have GPUs of their own.
bool on_own_gpus(const SweepRow& row);
/// Batches that are generated at once: slots freed by one take sequences of the next, so as many
/// steps share the end in which slots stay free.
std::int64_t batches_under_way(const SweepRow& row);
/// The row whose batch holds all of them.
SweepRow with_batches(SweepRow row, std::int64_t batches);

/// `view` (spec/node_groups.h): the GPU types of a cluster with several.
PlanRequest request_for(const SweepInputs& inputs, const SweepRow& row, const RowLengths& lengths,
                        int view);

/// Rows with equal keys pose the same request.
std::string key_of(const SweepRow& row, const RowLengths& lengths, int view);

/// Adds a part of a row's `why`.
void append(std::string& text, const std::string& more);

}  // namespace tessera
