// tessera bench reshard: switches of whole models, each beside its ceilings of the same run.
//
// Collective; every rank gets equal results. Seconds are those of the slowest rank.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "executor/measure/switch_rig.h"

namespace tessera {

struct ReshardCase {
  std::string from, to;  // as given, e.g. "tp2pp2", "fsdp4"
};

struct ReshardBenchOptions {
  DType dtype = DType::bf16;
  int repetitions = 10;
  std::vector<ReshardTransport> transports;
  bool ceilings = true;   // pulls and gathers of the same bytes, and of the whole model
  bool practice = false;  // overlap, stream order, changed bytes only, bf16 on the wire
};

/// "tp2pp2", "fsdp4", "tp2fsdp2": degrees in any order; replicas fill the world. Appends a Problem.
ParallelLayout read_layout(const std::string& text, std::int64_t layers, int ranks,
                           Problems& problems);

/// The order of the rollout's ranks (strided, contiguous, or shards fastest) that receives least.
RankMap best_rollout_map(const ParameterTable& table, const RankMap& training,
                         const ParallelLayout& layout, DType dtype);

/// Throws Error naming every layout of the cases that does not fit.
void check_cases(std::span<const ReshardCase> cases, const ModelSpec& model, int ranks);

/// One case as a JSON object: bytes, rows by transport, ceilings, way back, extra memory.
nlohmann::json bench_reshard(const BenchSite& site, const ModelSpec& model,
                             const ReshardCase& which, const ReshardBenchOptions& options);

/// The object as lines of a table.
std::string reshard_table(const nlohmann::json& result);

}  // namespace tessera
