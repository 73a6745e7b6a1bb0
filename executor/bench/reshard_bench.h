// tessera bench reshard: reshards of whole models, each beside its ceilings of the same run.
//
// Collective; every rank gets equal results. Seconds are those of the slowest rank.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "executor/bench/reshard_case.h"
#include "executor/bench/reshard_rig.h"

namespace tessera {

struct ReshardBenchOptions {
  DType dtype = DType::bf16;
  int repetitions = 10;
  std::vector<ReshardTransport> transports;
  bool ceilings = true;   // pulls and gathers of the same bytes, and of the whole model
  bool practice = false;  // overlap, stream order, changed bytes only, bf16 on the wire
};

/// One case as a JSON object: bytes, rows by transport, ceilings, way back, extra memory.
nlohmann::json bench_reshard(const BenchSite& site, const ModelSpec& model,
                             const ReshardCase& which, const ReshardBenchOptions& options);

/// The object as lines of a table.
std::string reshard_table(const nlohmann::json& result);

}  // namespace tessera
