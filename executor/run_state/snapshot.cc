#include "executor/run_state/snapshot.h"

#include <utility>

namespace tessera {
namespace {

using torch::Tensor;

constexpr const char* kStates[] = {kMaster, kExpAvg, kExpAvgSq};
constexpr std::int64_t kElement = sizeof(float);

}  // namespace

std::string state_name(const std::string& role, const char* state, const std::string& tensor) {
  return role + "." + state + "/" + tensor;
}

RoleSnapshot::RoleSnapshot(std::string role, const Weights& weights, Trainer& trainer)
    : role_(std::move(role)),
      weights_(weights),
      trainer_(trainer),
      pieces_(written_pieces(weights, trainer.optimizer().map())) {
  for (const StatePiece& piece : pieces_) {
    const bool adjoins = !runs_.empty() && runs_.back().shard + runs_.back().count == piece.shard;
    if (adjoins) {
      runs_.back().count += piece.count();
    } else {
      runs_.push_back({piece.shard, count_, piece.count()});
    }
    count_ += piece.count();
  }
}

void RoleSnapshot::prepare() {
  if (copies_) return;
  const bool gpu = weights_.device().is_cuda();
  copies_ =
      std::make_unique<StagingMemory>(3 * count_ * kElement, gpu ? cuda_pinning() : Pinning{});
}

void RoleSnapshot::take() {
  const torch::NoGradGuard no_grad;
  trainer_.wake();
  const OptimizerState& state = trainer_.optimizer().state();
  const bool gpu = weights_.device().is_cuda();
  prepare();
  const Tensor copies = torch::from_blob(copies_->data(), {3 * count_}, torch::kFloat32);
  const Tensor* const from[] = {&state.master, &state.exp_avg, &state.exp_avg_sq};
  for (int i = 0; i < 3; ++i) {
    const Tensor state_of_all = from[i]->detach();
    for (const Run& run : runs_) {
      const std::int64_t place = i * count_ + run.place;
      copies_->pieces(place * kElement, run.count * kElement,
                      [&](std::int64_t first, std::int64_t bytes) {
                        const std::int64_t at = first / kElement, count = bytes / kElement;
                        copies.narrow(0, at, count)
                            .copy_(state_of_all.narrow(0, run.shard + at - place, count),
                                   /*non_blocking=*/true);
                      });
    }
  }
  if (gpu) torch::cuda::synchronize(weights_.device().index());
  trainer_.rest();
}

std::vector<StateTensor> RoleSnapshot::tensors() const {
  std::vector<StateTensor> tensors;
  const auto* at = static_cast<const std::byte*>(copies_->data());
  for (int i = 0; i < 3; ++i) {
    for (const StatePiece& piece : pieces_) {
      const Parameter& parameter = weights_.table.rows[static_cast<std::size_t>(piece.row)];
      tensors.push_back({{piece_name(state_name(role_, kStates[i], parameter.name), piece.box),
                          DType::fp32, piece.memory_shape()},
                         at});
      at += tensors.back().spec.bytes();
    }
  }
  return tensors;
}

std::vector<StateTensor> generator_tensors(const std::vector<Tensor>& states) {
  std::vector<StateTensor> tensors;
  for (std::size_t i = 0; i < states.size(); ++i) {
    tensors.push_back(
        {{i == 0 ? "generator.cpu" : "generator.cuda", DType::uint8, {states[i].numel()}},
         static_cast<const std::byte*>(states[i].const_data_ptr())});
  }
  return tensors;
}

}  // namespace tessera
