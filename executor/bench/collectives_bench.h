// tessera bench collectives: rates of every operation by size, copy-engine reads beside them.
//
// Collective; every rank gets equal results. Rates follow nccl-tests: busbw for all-reduce,
// received bytes over time for the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "executor/bench/reshard_rig.h"

namespace tessera {

struct CollectivesBenchOptions {
  std::vector<std::int64_t> sizes;  // bytes of the larger buffer
  int repetitions = 10;
};

nlohmann::json bench_collectives(const BenchSite& site, const CollectivesBenchOptions& options);

std::string collectives_table(const nlohmann::json& result);

}  // namespace tessera
