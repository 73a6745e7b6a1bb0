#include "executor/train/router_replay.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"
#include "executor/tensor/to_device.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Bytes of notes that travel at a time.
constexpr std::int64_t kExchangeBytes = std::int64_t{64} << 20;

/// The layers with experts of a chunk, among the model's.
Interval routed_range(const Weights& weights, int chunk) {
  const LayerRange layers = chunk_layers(weights, chunk);
  const std::int64_t first = routed_layers(weights, {0, layers.first});
  return {first, first + routed_layers(weights, layers)};
}

/// Calls visit(sequence, token, row, count) for every run of a micro-batch's tokens that lie side
/// by side on this rank; sequences are those of the batch.
template <class Visit>
void each_run(std::span<const int> sequences, const PackedMicroBatch& packed,
              const ContextSlice& slice, Visit visit) {
  std::int64_t row = 0;
  for (const Interval& part : held_tokens(packed.tokens.lengths, slice)) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const std::int64_t last = first + packed.tokens.lengths[i];
      const std::int64_t lo = std::max(first, part.lo), hi = std::min(last, part.hi);
      if (lo < hi) visit(sequences[i], lo - first, row + lo - part.lo, hi - lo);
      first = last;
    }
    row += part.size();
  }
}

Tensor rows_of(const Weights& weights, std::int64_t layers, std::int64_t rows, std::int64_t value) {
  return torch::full({layers, rows, weights.model().moe->experts_per_token}, value,
                     torch::TensorOptions().dtype(torch::kShort));
}

}  // namespace

RouterReplay replay_of(const Weights& weights, int chunk, std::span<const TokenSequence> batch,
                       std::span<const int> sequences, const PackedMicroBatch& packed,
                       const ContextSlice& slice) {
  const auto routed = [&](int s) {
    return !batch[static_cast<std::size_t>(s)].routed_experts.empty();
  };
  if (std::none_of(sequences.begin(), sequences.end(), routed)) return {};
  const Interval layers = routed_range(weights, chunk);
  const std::int64_t all = routed_layers(weights, {0, weights.model().layers});
  const std::int64_t k = weights.model().moe->experts_per_token;
  Tensor rows = rows_of(weights, layers.size(), packed.tokens.tokens(), -1);
  each_run(
      sequences, packed, slice,
      [&](int s, std::int64_t token, std::int64_t row, std::int64_t count) {
        const auto experts = batch[static_cast<std::size_t>(s)].routed_experts;
        const std::int64_t known = static_cast<std::int64_t>(experts.size()) / (all * k);
        TESSERA_CHECK(known * all * k == static_cast<std::int64_t>(experts.size()));
        const std::int64_t own = std::min(count, known - token);
        if (own <= 0) return;
        const Tensor of_text =
            torch::from_blob(const_cast<std::int16_t*>(experts.data()), {known, all, k},
                             torch::TensorOptions().dtype(torch::kShort));
        rows.narrow(1, row, own)
            .copy_(
                of_text.narrow(0, token, own).narrow(1, layers.lo, layers.size()).transpose(0, 1));
      });
  return {.replayed = to_device(rows, weights.device())};
}

ExpertNotes::ExpertNotes(const Weights& weights, std::span<const TokenSequence> batch, bool wanted)
    : weights_(weights), batch_(batch) {
  if (!wanted) return;
  std::int64_t tokens = 0;
  for (const TokenSequence& sequence : batch) {
    first_.push_back(tokens);
    tokens += sequence.tokens();
  }
  // Every entry is written by one rank; the others add zero to it.
  all_ = torch::zeros({tokens, routed_layers(weights, {0, weights.model().layers}),
                       weights.model().moe->experts_per_token},
                      torch::TensorOptions().dtype(torch::kShort));
}

Tensor ExpertNotes::room(int chunk, const PackedMicroBatch& packed) const {
  if (!all_.defined()) return {};
  return rows_of(weights_, routed_range(weights_, chunk).size(), packed.tokens.tokens(), 0)
      .to(weights_.device());
}

void ExpertNotes::take(const Tensor& room, int chunk, std::span<const int> sequences,
                       const PackedMicroBatch& packed, const ContextSlice& slice) {
  // Tensor-parallel ranks that cut the same experts have noted the same.
  if (!room.defined() || weights_.coord.tp % weights_.layout.etp != 0) return;
  const Interval layers = routed_range(weights_, chunk);
  const Tensor rows = room.cpu();
  each_run(sequences, packed, slice,
           [&](int s, std::int64_t token, std::int64_t row, std::int64_t count) {
             all_.narrow(0, first_[static_cast<std::size_t>(s)] + token, count)
                 .narrow(1, layers.lo, layers.size())
                 .copy_(rows.narrow(1, row, count).transpose(0, 1));
           });
}

std::vector<std::vector<std::int16_t>> ExpertNotes::shared(const ParallelGroups& groups) {
  if (!all_.defined()) return {};
  const Tensor bytes = all_.view({-1}).view(torch::kByte);
  for (std::int64_t first = 0; groups.role != nullptr && first < bytes.numel();
       first += kExchangeBytes) {
    Tensor part = bytes.narrow(0, first, std::min(kExchangeBytes, bytes.numel() - first));
    Tensor there = part.to(weights_.device());
    all_reduce_(there, groups.role.get());
    if (weights_.device().is_cuda()) part.copy_(there);
  }
  std::vector<std::vector<std::int16_t>> result;
  const std::int64_t width = all_.size(1) * all_.size(2);
  for (std::size_t s = 0; s < batch_.size(); ++s) {
    const auto* from = all_.const_data_ptr<std::int16_t>() + first_[s] * width;
    result.emplace_back(from, from + batch_[s].tokens() * width);
  }
  return result;
}

Tensor room_to_compare(std::span<const TokenSequence> batch, torch::Device device) {
  if (std::all_of(batch.begin(), batch.end(),
                  [](const auto& s) { return s.routed_experts.empty(); }))
    return {};
  return torch::zeros({2}, torch::TensorOptions().dtype(torch::kLong).device(device));
}

void add_mismatch(const ParallelGroups& groups, Tensor compared, UpdateResult& result) {
  if (!compared.defined()) return;
  all_reduce_(compared, groups.role.get());
  const Tensor host = compared.cpu();
  const auto choices = host[0].item<std::int64_t>();
  if (choices == 0) return;
  result.metrics["router_replay_mismatch_fraction"] =
      host[1].item<double>() / static_cast<double>(choices);
}

}  // namespace tessera
