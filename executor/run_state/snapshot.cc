#include "executor/run_state/snapshot.h"

#include <utility>

#include "executor/run_state/hostward_copy.h"

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
      runs_.push_back({piece.shard, piece.count()});
    }
    count_ += piece.count();
  }
}

void RoleSnapshot::prepare() {
  if (!copies_) copies_ = std::make_unique<BackgroundMemory>(3 * count_ * kElement);
}

void RoleSnapshot::take() {
  const torch::NoGradGuard no_grad;
  trainer_.wake();
  const OptimizerState& state = trainer_.optimizer().state();
  prepare();
  HostwardCopy copy(static_cast<float*>(copies_->data()), state.master.device());
  for (const Tensor* each : {&state.master, &state.exp_avg, &state.exp_avg_sq}) {
    const Tensor shard = each->detach();
    for (const Run& run : runs_) copy.append(shard.narrow(0, run.shard, run.count));
  }
  copy.finish();
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
