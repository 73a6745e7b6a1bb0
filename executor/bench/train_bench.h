// tessera bench train: steps of a model's training in one layout, beside what its matrix products
// alone take.
//
// The model is executor/model's with random weights, the steps are Trainer's and Optimizer's as a
// run's. Collective over the world; one thread per rank. Times in seconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost_models/memory.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "executor/bench/reshard_rig.h"
#include "executor/tensor/side_stream.h"

namespace tessera {

/// `side_world` works on `side`; nullptr: collectives happen in program order.
struct TrainSite {
  BenchSite at;
  Communicator* side_world = nullptr;
  SideStream side;
};

struct TrainBenchOptions {
  ParallelLayout layout;
  std::int64_t sequence = 4096;            // tokens of every sequence
  std::int64_t micro_batch_tokens = 4096;  // per replica
  int micro_batches = 1;                   // per replica and step
  int steps = 5, warm_up = 2;
  DType dtype = DType::bf16;
  Recompute recompute = Recompute::none;
  bool reshard_after_forward = true;
  bool read_peers = true;      // parameters and activations by copies out of peers' memory
  bool read_gradients = true;  // the same of gradients; needs read_peers
  bool offload = false;        // optimizer states in host memory
  bool ceilings = true;
  bool profile = false;   // one more step, by kernel
  double peak_flops = 0;  // of one device; 0: no MFU
};

/// step_s (slowest rank, mean over steps that follow one another), tokens_per_s_per_gpu, mfu and
/// mfu_verl (which counts the input embedding too), split {forward_backward_s, optimizer_s,
/// exposed_side_s, inline_comm_s}, memory {allocated, reserved} (high-water marks of torch's
/// allocator, the largest rank's), ceiling {gemm_s, gemm_tflops, products []}, loss.
nlohmann::json bench_train(const TrainSite& site, const ModelSpec& model,
                           const TrainBenchOptions& options);

std::string train_table(const nlohmann::json& result);

}  // namespace tessera
