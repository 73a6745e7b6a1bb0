// Constants set by hand: what a step would take on another machine.
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// `words`: NAME=VALUE. Scalar constants take the value, in their own unit; tables of attention
/// (prefill_ratio, decode_ratio) and collectives' curves ("all_gather/8x1") a factor of their time.
/// On a cluster with several GPU types a name means all of them, "H100: NAME" one of them. Unknown
/// names, constants given twice and values that are not above 0 are Problems of `--set`.
void set_constants(Calibration& calibration, std::span<const std::string> words,
                   Problems& problems);

/// Of `words` takes NCCL_ALGO=NAME and NCCL_PROTO=NAME, as NCCL's environment has them, and returns
/// the others. A GPU of whose links NCCL's model knows nothing, and names that it does not have,
/// are Problems of `--set`.
std::vector<std::string> set_nccl(const ClusterSpec& cluster, Calibration& calibration,
                                  std::span<const std::string> words, Problems& problems);

}  // namespace tessera
