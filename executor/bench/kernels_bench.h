// tessera bench kernels: each kernel of a training step beside the ceiling that bounds it.
//
// On the shapes of one layer of a model: forward and backward of the differentiable operators that
// the trainer calls (the fused kernels on a GPU, their references elsewhere), and the optimizer's
// kernels. Ceilings (copy within memory, matrix products) are measured in the same run. One rank.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "executor/bench/reshard_rig.h"

namespace tessera {

struct KernelsBenchOptions {
  std::int64_t tokens = 16384, sequence = 4096;
  std::int64_t optimizer_elements = std::int64_t{1} << 28;
  int repetitions = 10;
  DType dtype = DType::bf16;
};

/// {copy_tb_per_s, kernels [{kernel, seconds, bytes | flops, tb_per_s | tflops, ceiling,
/// of_ceiling}]}
nlohmann::json bench_kernels(const BenchSite& site, const ModelSpec& model,
                             const KernelsBenchOptions& options);

std::string kernels_table(const nlohmann::json& result);

}  // namespace tessera
