// A checkpoint of two ranks with eight numbers each, written as a run writes it.
#pragma once

#include <memory>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/state_file.h"

namespace tessera {

inline CheckpointManifest manifest_of(std::int64_t step, double score = 0) {
  CheckpointManifest manifest{.step = step,
                              .created = "2026-01-31T09:05:00Z",
                              .tessera_version = "1",
                              .roles = {},
                              .kl_coef = 0.1 + 0.2,
                              .prompts_taken = 96,
                              .rules = {.lr_scale = 0.1 + 0.2,
                                        .prompts_skipped = 1,
                                        .warnings = 2,
                                        .lr_lowered = 3,
                                        .roll_backs = 4,
                                        .pauses = 5,
                                        .stops = 6,
                                        .not_finite = 7,
                                        .skipped_updates = 8},
                              .owes_validation = true,
                              .seed = 7,
                              .data = {.prompts = 512, .per_step = 32, .seed = 1, .digest = "a"},
                              .lengths = {{3, 16.0 / 3, 9}, {11, 0.5, 1}},
                              .metrics = {{"critic/score/mean", score}},
                              .files = {}};
  manifest.roles["actor"] = {.model = "actor",
                             .parameters = 8,
                             .dtype = DType::bf16,
                             .optimizer_steps = 2 * step,
                             .layout = "tp 2"};
  return manifest;
}

inline constexpr int kRanks = 2;
inline constexpr int kRows = 4;  // of two numbers, of each rank

/// How a rank's rows lie: as one piece, or each as one, which then fill as many files.
enum class Pieces { whole, rows };

/// The state of one rank: 8 numbers that its rank and the step tell.
struct RankState {
  std::vector<float> values;
  RankState(int rank, std::int64_t step) {
    for (int i = 0; i < 8; ++i) values.push_back(static_cast<float>(100 * rank + i + 1000 * step));
  }
  std::vector<StateTensor> tensors(std::int64_t rank, Pieces pieces = Pieces::whole) const {
    const std::int64_t rows = pieces == Pieces::whole ? kRows : 1;
    std::vector<StateTensor> tensors;
    for (std::int64_t row = 0; row < kRows; row += rows) {
      const std::int64_t first = kRows * rank + row;
      const Box box{.dims = {Interval{first, first + rows}, Interval{0, 2}}, .rank = 2};
      tensors.push_back({{piece_name("actor.master/w", box), DType::fp32, {rows, 2}},
                         reinterpret_cast<const std::byte*>(values.data() + 2 * row)});
    }
    return tensors;
  }
};

/// The files of save(), by rank and part.
inline std::vector<std::string> files_of(Pieces pieces) {
  std::vector<std::string> names;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int part = 0; part < (pieces == Pieces::whole ? 1 : kRows); ++part) {
      names.push_back(rank_file_name(rank, part));
    }
  }
  return names;
}

/// Writes a checkpoint by two ranks as a run does whose next step goes well; what became of it.
inline CheckpointEnd save(const std::filesystem::path& checkpoints, std::int64_t step,
                          double score = 0, const CheckpointsToKeep& keep = {},
                          Pieces pieces = Pieces::whole) {
  const std::int64_t least_part_bytes = pieces == Pieces::whole ? kLeastPartBytes : 1;
  std::vector<RankState> states;
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  for (int rank = 0; rank < kRanks; ++rank) {
    states.emplace_back(rank, step);
    writers.push_back(
        std::make_unique<CheckpointWriter>(checkpoints, rank, kRanks, keep, least_part_bytes));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    writers[at]->begin(manifest_of(step, score), states[at].tensors(rank, pieces));
  }
  bool all = true;
  for (const auto& writer : writers) all = writer->await_own().empty() && all;
  for (const auto& writer : writers) writer->settle(all);
  if (all) writers[0]->prove(step);
  return writers[0]->take_ends().at(0);
}

}  // namespace tessera
