// Micro-batches through the stages of a pipeline: 1F1B for training, forward only for inference.
//
// Schedule of Narayanan et al. 2021 (PipeDream-flush): stage s of p runs min(p - s - 1, m)
// micro-batches ahead, then alternates; it keeps the activations of at most p - s micro-batches.
// With virtual stages the interleaved schedule of interleave.h runs tick by tick, one exchange of
// the whole pipeline after each. Messages travel between neighbours only, over a communicator per
// pair, so that each side's k-th exchange on a link meets the other side's k-th, whether exchanges
// block (threads, MPI) or are enqueued (NCCL). What stages know of a micro-batch together (sums)
// travels beside its activations, and back beside their gradients. One thread per rank.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"

namespace tessera {

/// This rank's neighbours in the pipeline.
struct PipelineLinks {
  int stage = 0, stages = 1;
  int chunks = 1;                                // virtual stages per rank
  Communicator* all = nullptr;                   // the pipeline's ranks; chunks > 1
  std::unique_ptr<Communicator> previous, next;  // {s - 1, s} and {s, s + 1}; nullptr at the ends
};

/// Collective over `pp`; nullptr means a single stage.
PipelineLinks make_links(Communicator* pp, int chunks = 1);

/// The activations that travel for each micro-batch: tokens[m] rows of `width` elements.
struct PipelineShape {
  std::vector<std::int64_t> tokens;
  std::int64_t width = 0;
  torch::TensorOptions options;
  std::int64_t sums = 0;  // fp32 numbers beside them in training
};

/// A stage's forward's result: its output, or on the last stage the tensors to differentiate with
/// their gradients.
struct StageOutput {
  std::vector<torch::Tensor> roots, gradients;
  /// fp32 [shape.sums], undefined where the shape has none: this chunk's part. When the backward
  /// pass begins it is the sum over all chunks.
  torch::Tensor sums = {};
};

/// Runs the micro-batch's forward of this stage's chunk. `input` is undefined where the model
/// begins and requires a gradient on the others.
using StageForward =
    std::function<StageOutput(int micro_batch, int chunk, const torch::Tensor& input)>;

/// Forward and backward of all micro-batches; gradients accumulate in the parameters.
void train_pipeline(const PipelineLinks& links, const PipelineShape& shape,
                    const StageForward& forward);

/// Forward of all micro-batches. `forward` returns what the next stage needs (ignored on the last).
void infer_pipeline(const PipelineLinks& links, const PipelineShape& shape,
                    const std::function<torch::Tensor(int micro_batch, int chunk,
                                                      const torch::Tensor& input)>& forward);

}  // namespace tessera
