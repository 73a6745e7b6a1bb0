#include "executor/train/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

/// The slot's place in the arena, in elements.
Interval elements_of(const ArenaLayout& arena, const ArenaSlot& slot) {
  const std::int64_t first = slot.range.offset / arena.element_bytes;
  return {first, first + slot.range.bytes / arena.element_bytes};
}

/// Appends `range`, or lengthens the last one when only padding of the arena (zeros, of at most
/// `padding` elements) lies between.
void append(std::vector<Interval>& ranges, Interval range, std::int64_t padding) {
  if (range.empty()) return;
  if (!ranges.empty() && range.lo - ranges.back().hi <= padding)
    ranges.back().hi = range.hi;
  else
    ranges.push_back(range);
}

/// Views of the part's tensor `flat` at arena positions `ranges`.
std::vector<torch::Tensor> views(const torch::Tensor& flat, const std::vector<Interval>& ranges,
                                 std::int64_t first) {
  std::vector<torch::Tensor> result;
  for (const Interval& range : ranges)
    result.push_back(flat.narrow(0, range.lo - first, range.size()));
  return result;
}

}  // namespace

Optimizer::Optimizer(Weights& weights, const ParallelGroups& groups, const AdamWOptions& options)
    : weights_(weights), groups_(groups), options_(options) {
  const torch::NoGradGuard no_grad;
  sharded_ = weights.layout.zero == 1 && groups.dp != nullptr;
  const std::int64_t elements = weights.storage.numel();
  const std::int64_t parts = sharded_ ? groups.dp_size : 1;
  const std::int64_t part = (elements + parts - 1) / parts;
  state_.first = std::min(elements, sharded_ ? groups.dp_rank * part : 0);
  state_.count = std::min(elements, state_.first + part) - state_.first;

  const auto fp32 = torch::TensorOptions().dtype(torch::kFloat32).device(weights.device());
  flat_gradients_ = torch::zeros({part * parts}, fp32);
  part_ = sharded_ ? torch::zeros({part}, fp32) : flat_gradients_;
  const torch::Tensor mine = weights.storage.narrow(0, state_.first, state_.count);
  state_.master = weights.dtype == DType::fp32 ? mine : mine.to(torch::kFloat32);
  state_.exp_avg = torch::zeros({state_.count}, fp32);
  state_.exp_avg_sq = torch::zeros({state_.count}, fp32);
  steps_ = torch::zeros({}, fp32);

  gradients_.resize(weights.tensors.size());
  for (const ArenaSlot& slot : weights.arena.slots) {
    const std::size_t row = static_cast<std::size_t>(slot.tensor);
    const Interval place = elements_of(weights.arena, slot);
    torch::Tensor& tensor = weights.tensors[row];
    gradients_[row] = flat_gradients_.narrow(0, place.lo, place.size()).view(tensor.sizes());
    tensor.requires_grad_(true);
    if (weights.dtype != DType::fp32) tensor.set_grad_dtype(torch::kFloat32);
    tensor.mutable_grad() = gradients_[row];
  }
  find_ranges();
}

void Optimizer::find_ranges() {
  const Interval part{state_.first, state_.first + state_.count};
  std::vector<Interval> counted, decayed, plain;
  std::int64_t previous_end = 0;
  for (const ArenaSlot& slot : weights_.arena.slots) {
    const Parameter& parameter = weights_.table.rows[static_cast<std::size_t>(slot.tensor)];
    const Interval place = elements_of(weights_.arena, slot);
    const std::int64_t padding = place.lo - previous_end;
    previous_end = place.hi;
    append(parameter.decayed ? decayed : plain, intersect(place, part), padding);
    const std::int64_t outer = slot.memory_shape().front();
    const std::int64_t inner = outer == 0 ? 0 : place.size() / outer;
    const Interval rows = counted_range(parameter, weights_.layout, weights_.coord);
    append(counted, intersect({place.lo + rows.lo * inner, place.lo + rows.hi * inner}, part),
           padding);
  }
  counted_ = views(part_, counted, state_.first);
  const auto add = [&](double decay, const std::vector<Interval>& intervals) {
    if (intervals.empty()) return;
    ranges_.push_back({decay, views(state_.master, intervals, state_.first),
                       views(part_, intervals, state_.first),
                       views(state_.exp_avg, intervals, state_.first),
                       views(state_.exp_avg_sq, intervals, state_.first),
                       std::vector<torch::Tensor>(intervals.size(), steps_)});
  };
  add(options_.weight_decay, decayed);
  add(0.0, plain);
}

void Optimizer::reduce_gradients() {
  reduce_shared_gradients(weights_, groups_, gradients_);
  if (groups_.dp == nullptr) return;
  if (sharded_)
    groups_.dp->reduce_scatter(flat_gradients_.data_ptr(), part_.data_ptr(),
                               static_cast<std::size_t>(part_.numel()), DType::fp32, ReduceOp::sum);
  else
    groups_.dp->all_reduce(flat_gradients_.data_ptr(),
                           static_cast<std::size_t>(flat_gradients_.numel()), DType::fp32,
                           ReduceOp::sum);
}

double Optimizer::global_norm() {
  torch::Tensor squares = torch::zeros({}, part_.options());
  if (!counted_.empty()) squares = torch::stack(at::_foreach_norm(counted_, 2)).square().sum();
  // Without ZeRO data-parallel ranks hold the same gradients; with it they hold disjoint parts.
  Communicator* const group = sharded_ ? groups_.role.get() : groups_.model.get();
  if (group != nullptr) group->all_reduce(squares.data_ptr(), 1, DType::fp32, ReduceOp::sum);
  return std::sqrt(squares.item<double>());
}

StepResult Optimizer::step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  reduce_gradients();
  const StepResult result{.grad_norm = global_norm(), .applied = true};
  if (!std::isfinite(result.grad_norm)) return {result.grad_norm, false};
  // torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
  const double scale = options_.clip_norm / (result.grad_norm + 1e-6);
  if (options_.clip_norm > 0 && scale < 1) part_.mul_(scale);

  ++state_.steps;
  steps_.fill_(static_cast<double>(state_.steps));
  for (Ranges& r : ranges_)
    at::_fused_adamw_(r.master, r.gradient, r.exp_avg, r.exp_avg_sq, {}, r.steps, learning_rate,
                      options_.beta1, options_.beta2, r.decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  publish_weights();
  return result;
}

void Optimizer::publish_weights() {
  torch::Tensor& storage = weights_.storage;
  if (weights_.dtype != DType::fp32)
    storage.narrow(0, state_.first, state_.count).copy_(state_.master);
  if (!sharded_) return;
  const std::int64_t part = part_.numel();
  torch::Tensor whole = storage;
  const bool staged = flat_gradients_.numel() != storage.numel();  // the last part is shorter
  if (staged) {
    whole = torch::zeros({flat_gradients_.numel()}, storage.options());
    whole.narrow(0, groups_.dp_rank * part, part)
        .narrow(0, 0, state_.count)
        .copy_(storage.narrow(0, state_.first, state_.count));
  }
  groups_.dp->all_gather(whole.narrow(0, groups_.dp_rank * part, part).data_ptr(), whole.data_ptr(),
                         static_cast<std::size_t>(part), weights_.dtype);
  if (staged) storage.copy_(whole.narrow(0, 0, storage.numel()));
}

void Optimizer::load_state(const OptimizerState& state) {
  const torch::NoGradGuard no_grad;
  TESSERA_CHECK(state.first == state_.first && state.count == state_.count);
  state_.steps = state.steps;
  state_.master.copy_(state.master);
  state_.exp_avg.copy_(state.exp_avg);
  state_.exp_avg_sq.copy_(state.exp_avg_sq);
  publish_weights();
}

std::int64_t Optimizer::bytes() const {
  const std::int64_t owned =
      weights_.dtype == DType::fp32 ? 2 : 3;  // fp32: the arena is the master
  return 4 * (flat_gradients_.numel() + (sharded_ ? part_.numel() : 0) + owned * state_.count);
}

}  // namespace tessera
