// How one role's model is cut over its ranks: the parallel degrees and the pipeline stages.
//
// Plain values; `ranks = tp * cp * dp * pp` with dp = dp_replicate * dp_shard. Degrees count
// ranks and chunks, and are at least 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Layers [first, last) held by one stage and chunk.
struct LayerRange {
  std::int64_t first = 0, last = 0;
  bool operator==(const LayerRange&) const = default;
};

/// Into how many parts each axis cuts a role: what searches, prices and sweeps know a layout by,
/// and a part of every value that is a layout.
struct Degrees {
  int tp = 1;        // tensor parallel
  int cp = 1;        // context parallel
  int pp = 1;        // pipeline stages
  int vpp = 1;       // virtual stages (chunks) per rank
  int dp = 1;        // data parallel: replicas times shards
  int dp_shard = 1;  // FSDP shards of each replica; divides dp; > 1 means zero 3
  int ep = 1;        // expert parallel: parts of the routed experts; divides tp * cp * dp with etp
  int etp = 1;       // parts of each routed expert; 1 = experts are whole at any tp

  const Degrees& degrees() const { return *this; }
  Degrees& degrees() { return *this; }
  /// Replicas of the (sharded) model.
  int dp_replicate() const { return dp / dp_shard; }
  auto operator<=>(const Degrees&) const = default;
};

struct ParallelLayout : Degrees {
  int zero = 0;  // 0, 1 (optimizer), 2 (+ gradients), 3 (+ parameters)
  /// Chunk c of stage p is stages[c * pp + p]; in layer order, covering every layer once.
  std::vector<LayerRange> stages;
  bool sequence_parallel = false;
  bool ulysses = false;  // cp exchanges heads for positions; else a ring over keys and values

  int ranks() const { return tp * cp * pp * dp; }
  int stage_ranks() const { return tp * cp * dp; }
  /// Replicas of an expert's slice (expert data parallel).
  int edp() const { return stage_ranks() / (ep * etp); }
  bool operator==(const ParallelLayout&) const = default;
};

/// Stages as even as they get: part i of pp * vpp chunks by the split rule.
std::vector<LayerRange> even_stages(std::int64_t layers, int pp, int vpp = 1);

/// Appends what is impossible about `layout` for a model of `layers` layers on `ranks` ranks.
void validate(const ParallelLayout& layout, std::int64_t layers, std::int64_t ranks,
              const std::string& file, const std::string& place, Problems& problems);

/// "tp2 pp2 dp1" with only the degrees above one (and always tp, pp, dp).
std::string describe(const ParallelLayout& layout);

/// Order of the axes over a role's ranks.
enum class RankOrder {
  contiguous,  // tp fastest, then cp, pp, dp: HybridFlow's training order and vLLM's
  megatron,    // tp, cp, dp, pp: pipeline slowest
  strided,     // rollout only: HybridFlow's generation groups inside the actor's blocks
  list,        // the plan lists the ranks itself
};
std::string_view name_of(RankOrder order);

}  // namespace tessera
