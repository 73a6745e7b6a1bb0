// CUDA kernels that draw tokens from rows of logits, and score tokens that are given.
//
// Plain functions of device pointers, sizes and a stream (cudaStream_t); they enqueue and return,
// allocate nothing and may be captured in a graph. Logits are fp32 [.., columns]. Where a device
// has clusters of thread blocks (compute capability 9) a row is read once; elsewhere twice. Both
// give the bits of executor/rl/sampling.h, which is the reference. No torch here.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// How tokens are drawn: by rl/draw_weight.h, as executor/rl/sampling.h has it without top-k and
/// top-p.
struct DrawOptions {
  double temperature = 1;
  bool greedy = false;
  std::int64_t least_weight = 0;  // smaller integer weights are not drawn (least_weight); 0 = all
};

/// Where draws go: [draws] each; `last_tokens` is indexed by `slots`.
struct DrawTargets {
  std::int32_t* tokens = nullptr;  // -1 where the row is no row of logits
  float* log_probs = nullptr;
  std::int64_t* last_tokens = nullptr;
};

/// Bytes of scratch for `draws` draws.
std::int64_t draw_scratch_bytes(std::int64_t draws);

/// Draws from row rows[i] of logits [.., columns] (fp32) with uniforms[i], for each of `draws`.
void draw_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                 const std::int64_t* rows, const double* uniforms, const std::int64_t* slots,
                 std::int64_t draws, const DrawTargets& targets, void* scratch, void* stream);

/// The log-probs that draw_tokens reports of tokens that are given: tokens[i] from row rows[i].
void score_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                  const std::int64_t* rows, const std::int64_t* tokens, std::int64_t count,
                  float* log_probs, void* scratch, void* stream);

// The same draws where each GPU of a group has some columns of every row: three steps and, after
// each of them, a message among the GPUs of what it wrote. A row is nowhere whole.

/// Pieces that a GPU's columns of a row are cut into.
constexpr int kDrawSegments = 8;

/// One GPU's columns of the rows.
struct ColumnShare {
  const float* logits = nullptr;  // [.., columns]
  std::int64_t columns = 0;       // of this share
  std::int64_t first = 0;         // columns of the shares before it
  int rank = 0, ranks = 1;        // the shares are in the order of the ranks
};
/// Sums of a segment's integer weights: of all elements; of those that may be drawn.
struct ShareWeights {
  std::int64_t all, kept;
};

/// Writes highest [draws, kDrawSegments], which the ranks gather.
void share_highest(const ColumnShare& share, const std::int64_t* rows, std::int64_t draws,
                   float* highest, void* stream);
/// `highest` of all ranks, in their order; writes weights [draws, kDrawSegments], which the ranks
/// gather.
void share_weights(const DrawOptions& options, const ColumnShare& share, const std::int64_t* rows,
                   std::int64_t draws, const float* highest, ShareWeights* weights, void* stream);
/// Both of all ranks; writes words [draws], 0 before, where a draw's token is of this share. The
/// ranks add them up.
void share_draws(const DrawOptions& options, const ColumnShare& share, const std::int64_t* rows,
                 const double* uniforms, std::int64_t draws, const float* highest,
                 const ShareWeights* weights, std::int64_t* words, void* stream);
/// What the added words say; slots as draw_tokens has them.
void put_draws(const std::int64_t* words, const std::int64_t* slots, std::int64_t draws,
               const DrawTargets& targets, void* stream);

}  // namespace tessera::kernels
