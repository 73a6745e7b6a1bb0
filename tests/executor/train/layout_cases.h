// Layouts that the trainer's tests hold against one rank.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera::testing_models {

/// One layout of a model that trains as one rank does.
struct LayoutCase {
  std::string name;
  ModelSpec model;
  ParallelLayout layout;
  std::int64_t token_limit = 0;
  Recompute recompute = Recompute::none;
  bool reshard_after_forward = true;
  bool offload = false;
  int sequences = 9;
  bool read_peers = false;  // instead of collectives over those who share parameters or gradients
  double balance = 0;       // coefficient of the routers' load-balancing loss
  double z_loss = 0;        // and of their z loss

  friend void PrintTo(const LayoutCase& c, std::ostream* out) { *out << c.name; }
};

ParallelLayout layout(const ModelSpec& model, int tp, int pp, int replicate, int shard, int zero,
                      bool sequence = false, int vpp = 1);

/// Dense models without context parallelism, models with experts, those with the load-balancing
/// loss of their routers, and dense ones with context parallelism.
std::vector<LayoutCase> layouts();
std::vector<LayoutCase> expert_layouts();
std::vector<LayoutCase> balanced_layouts();
std::vector<LayoutCase> context_layouts();

}  // namespace tessera::testing_models
