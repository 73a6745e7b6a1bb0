// One line of a sweep: a fixed layout and workload, with whatever is left to the planner.
//
// Plain values read from a CSV whose columns docs/commands/sweep.md lists. Batches count
// sequences, lengths tokens per sequence, degrees and GPUs ranks. An empty cell is an empty
// optional.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/engine_traits.h"
#include "cost_models/memory.h"

namespace tessera {

enum class SweepKind { train, logprob, rollout, iteration };
std::string_view name_of(SweepKind kind);

/// Element type of the GEMMs; what the source calls fp8 keeps its master weights and reductions,
/// tf32 keeps everything in fp32 and multiplies on tensor cores.
enum class SweepPrecision { bf16, fp16, fp8, fp32, tf32 };
std::string_view name_of(SweepPrecision precision);

/// `unfused`: scores and probabilities are written to memory (Megatron-LM before flash attention).
/// `flash_1`, `flash_2`: kernels of that generation (Dao et al. 2022; Dao 2023); `flash_3`: the
/// device's best (FlashAttention 3, cuDNN's, Transformer Engine's); `flash`: not said which.
enum class SweepAttention { flash, unfused, flash_1, flash_2, flash_3 };
std::string_view name_of(SweepAttention attention);

/// Whether training and generation share their GPUs; `by_gpus`: they do where train_gpus + gen_gpus
/// exceeds gpus.
enum class SweepPlacement { by_gpus, colocated, split };

/// Whether a rollout on the actor's GPUs keeps its weights while these train.
enum class RolloutWeights { keep, unmap };

/// Columns that a sweep writes, and does not read.
inline constexpr std::array<std::string_view, 11> kSweepOutputs = {
    "step_s", "gen_s",    "reshard_s", "log_prob_s", "update_s", "tokens_per_s_per_gpu",
    "mfu",    "peak_gib", "fits",      "feasible",   "why"};

struct SweepRow {
  std::size_t line = 0;
  std::string model, cluster;  // as written
  SweepKind kind = SweepKind::train;
  using Count = std::optional<std::int64_t>;
  Count gpus, tp, pp, dp, cp, ep, etp, vpp, zero, micro_batch, global_batch;
  std::optional<double> prompt_tokens, response_tokens;
  std::optional<Recompute> recompute;
  std::optional<bool> sequence_parallel;
  Count train_gpus, gen_gpus, gen_tp, gen_pp, gen_dp, gen_ep, policy_lag, mini_batch,
      max_response_tokens;
  SweepPlacement placement = SweepPlacement::by_gpus;
  SweepPrecision precision = SweepPrecision::bf16;
  std::optional<SweepAttention> attention;  // empty = the engine's; of published runs flash
  bool compiled = false;  // by torch.compile, which FlexAttention always is; said with attention
  /// What the run's software does; empty = what the engine does, or what published engines of the
  /// row's kind do (row_request.cc).
  std::optional<ExpertDispatch> expert_dispatch;
  std::optional<bool> expert_overlap, tp_overlap;
  /// False: FSDP's layers stay gathered for the backward pass (torch's name; empty = true).
  std::optional<bool> reshard_after_forward;
  std::optional<LossKernel> loss;
  std::optional<TrainedRanks> rank_order;
  std::optional<bool> narrow_gradients;  // grad_precision bf16 or fp16; false: fp32
  std::optional<bool> reference;         // an iteration scores a reference, too (empty = false)
  std::optional<RolloutWeights> rollout_weights;  // of an iteration; empty = the quicker that fits
  /// The column plan_engine: whose rules and traits price the row, as `plan --engine` has them
  /// (planner/engines/engine.h); empty = every layout, with what published engines do.
  std::string engine;
  bool offload_optimizer = false;  // likewise set by programs
  std::string notes;               // how free text was read; ends with "; "
};

/// Columns that are neither read nor written: they are kept as they are.
std::vector<std::string> kept_columns(const CsvTable& table);

/// Every row of the table. Needs the columns model, cluster and kind; others may be absent. nullopt
/// and Problems (line and column name) for every cell that does not read, and for a column whose
/// name is none that is read but resembles one, as `micro_batches`.
std::optional<std::vector<SweepRow>> read_sweep_rows(const CsvTable& table, Problems& problems);
/// The rows with whatever of them reads beside the Problems, so that what they name can be looked
/// up, too; nullopt where a needed column is missing or misspelt.
std::optional<std::vector<SweepRow>> read_sweep_rows_as_far(const CsvTable& table,
                                                            Problems& problems);

}  // namespace tessera
