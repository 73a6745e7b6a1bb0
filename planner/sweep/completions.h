// Layouts that agree with what a row fixes: the ways in which its empty cells can be filled.
//
// Pure functions over plain values; degrees count ranks.
#pragma once

#include <string>
#include <vector>

#include "cost_models/spec/cluster_spec.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/solution.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

/// Every value of a training or log-probability layout.
struct TrainLayout : Degrees {
  int zero = 0;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  int head_layers = 0;           // layers' worth that the last stage holds less
  std::int64_t micro_batch = 1;  // sequences per replica
  int gpus() const { return tp * pp * dp * cp; }
};

/// Every value of a generation layout.
struct GenLayout : Degrees {
  int gpus() const { return tp * pp * dp; }
};

/// The completions of one row, or why there is none.
template <class Layout>
struct Completions {
  std::vector<Layout> layouts;
  std::string why;
};

/// Training ranks: train_gpus, else gpus. An empty tp stays within a node, an empty cp is 1, an
/// empty ep the smallest that is needed, an empty micro-batch a power of two that divides a
/// replica's share; `sequence_parallel` is on wherever tp > 1.
Completions<TrainLayout> train_completions(const SweepRow& row, const ModelSpec& model,
                                           const ClusterSpec& cluster);

/// Generation ranks: gen_gpus, else gpus. For rows of kind rollout without gen_ columns the plain
/// degrees count.
Completions<GenLayout> gen_completions(const SweepRow& row, const ModelSpec& model,
                                       const ClusterSpec& cluster);

/// Ranks that train, and that generate: what the columns say, else the product of the degrees.
std::int64_t train_ranks(const SweepRow& row);
std::int64_t gen_ranks(const SweepRow& row);

/// The actor's candidate without offload; `longest`: tokens of the longest sequence.
Candidate candidate_of(const TrainLayout& layout, std::int64_t longest);
/// The rollout's, without its batches.
Candidate candidate_of(const GenLayout& layout);

/// "tp2 pp1 dp8 zero1 recompute=full micro_batch=4" with only those that the row leaves open.
std::string chosen_text(const SweepRow& row, const TrainLayout& layout);
std::string chosen_text(const SweepRow& row, const GenLayout& layout);
/// What was chosen for the row's empty cells: "tp2 dp8 zero1 micro_batch=4 offload=all; gen_tp2;
/// rollout unmapped; 160 sequences decoded at once".
std::string chosen_text(const SweepRow& row, const Solution& solution, std::int64_t longest);

}  // namespace tessera
