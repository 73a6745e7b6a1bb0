#include "executor/model/decode.h"

#include <algorithm>
#include <limits>

#include "cost_models/documents/check.h"
#include "executor/comm/groups.h"
#include "executor/model/decoder_layer.h"

namespace tessera {
namespace {

using torch::Tensor;

Tensor index_tensor(const std::vector<std::int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

bool counts_up(std::span<const std::int64_t> slots) {
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (slots[i] != slots[i - 1] + 1) return false;
  }
  return true;
}

/// Which cached keys each new token sees, as an addend to attention scores [sequences, 1, 1, keys];
/// undefined when every token sees all.
Tensor key_mask(const Tensor& positions, std::int64_t keys, std::int64_t window, bool ragged,
                at::ScalarType dtype) {
  const bool windowed = window > 0 && keys > window;
  if (!ragged && !windowed) return {};
  const Tensor key = torch::arange(keys, positions.options()).unsqueeze(0);
  const Tensor position = positions.unsqueeze(1);
  Tensor hidden = key > position;
  if (windowed) hidden.logical_or_(key <= position - window);
  return torch::zeros(hidden.sizes(), positions.options().dtype(dtype))
      .masked_fill_(hidden, -std::numeric_limits<float>::infinity())
      .view({positions.size(0), 1, 1, keys});
}

/// One query token per sequence: q [sequences, heads, dim], k and v [sequences, keys, kv, dim].
/// Query heads of one KV head are the rows of one block, so K and V are not repeated.
Tensor attend_cached(const HeadRange& heads, const Tensor& q, Tensor k, Tensor v,
                     const Tensor& mask) {
  if (!heads.uniform()) {
    k = repeat_kv(k, heads, 2);
    v = repeat_kv(v, heads, 2);
  }
  const std::int64_t sequences = q.size(0), kv = k.size(2), dim = q.size(2);
  const std::int64_t share = q.size(1) / kv;
  std::optional<Tensor> addend;
  if (mask.defined()) addend = mask.expand({sequences, kv, share, k.size(1)});
  return at::scaled_dot_product_attention(q.view({sequences, kv, share, dim}), k.transpose(1, 2),
                                          v.transpose(1, 2), addend)
      .reshape({sequences, -1});
}

}  // namespace

CachedDecoder::CachedDecoder(const Weights& weights, const ParallelGroups& groups)
    : weights_(weights), groups_(groups) {
  TESSERA_CHECK(weights.layout.pp == 1 && weights.layout.cp == 1);
}

std::int64_t CachedDecoder::reserve(std::int64_t slots, std::int64_t max_length) {
  release();
  slots_ = slots;
  max_length_ = max_length;
  lengths_.assign(static_cast<std::size_t>(slots), 0);
  const HeadRange heads = head_range(weights_.model(), weights_.layout.tp, weights_.coord.tp);
  const std::vector<std::int64_t> shape{slots * max_length, heads.kv.size(),
                                        weights_.model().head_dim};
  for (std::int64_t layer = 0; layer < weights_.model().layers; ++layer) {
    keys_.push_back(torch::zeros(shape, weights_.storage.options()));
    values_.push_back(torch::zeros(shape, weights_.storage.options()));
  }
  return 2 * weights_.model().layers * shape[0] * shape[1] * shape[2] * size_of(weights_.dtype);
}

void CachedDecoder::release() {
  keys_.clear();
  values_.clear();
  lengths_.clear();
  slots_ = max_length_ = 0;
}

Tensor CachedDecoder::prefill(const PackedTokens& prompts, std::span<const std::int64_t> slots) {
  torch::NoGradGuard no_grad;
  TESSERA_CHECK(prompts.lengths.size() == slots.size());
  Communicator* tp = groups_.tp.get();
  std::vector<std::int64_t> cache_rows, last_rows;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    TESSERA_CHECK(slots[i] < slots_ && prompts.lengths[i] <= max_length_);
    for (std::int64_t t = 0; t < prompts.lengths[i]; ++t) {
      cache_rows.push_back(slots[i] * max_length_ + t);
    }
    last_rows.push_back(static_cast<std::int64_t>(cache_rows.size()) - 1);
    lengths_[static_cast<std::size_t>(slots[i])] = prompts.lengths[i];
  }
  const Tensor destination = index_tensor(cache_rows, weights_.device());
  const AttentionPlan plan = plan_attention(weights_, prompts.lengths);
  const RopeTable rope =
      rope_table(weights_.inverse_frequencies, weights_.model().rope.attention_factor,
                 prompts.positions, scalar_type(weights_.dtype));
  Tensor x = embed_tokens(weights_, prompts.ids, tp);
  for (std::size_t layer = 0; layer < weights_.rows.layers.size(); ++layer) {
    const LayerRows& rows = weights_.rows.layers[layer];
    const Tensor normed =
        rms_norm(x, weights_.tensor(rows.input_norm), weights_.model().norm_epsilon);
    const HeadStates heads = project_heads(weights_, rows, normed, rope, tp);
    keys_[layer].index_copy_(0, destination, heads.k);
    values_[layer].index_copy_(0, destination, heads.v);
    x = after_attention(weights_, rows, x, attend(plan, heads.q, heads.k, heads.v), tp);
  }
  return final_norm(weights_, x.index_select(0, index_tensor(last_rows, weights_.device())));
}

void CachedDecoder::copy_slots(std::span<const std::int64_t> from,
                               std::span<const std::int64_t> to) {
  torch::NoGradGuard no_grad;
  TESSERA_CHECK(from.size() == to.size());
  std::vector<std::int64_t> source, destination;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t tokens = length(from[i]);
    for (std::int64_t t = 0; t < tokens; ++t) {
      source.push_back(from[i] * max_length_ + t);
      destination.push_back(to[i] * max_length_ + t);
    }
    lengths_[static_cast<std::size_t>(to[i])] = tokens;
  }
  const Tensor rows = index_tensor(source, weights_.device());
  const Tensor places = index_tensor(destination, weights_.device());
  for (auto* cache : {&keys_, &values_}) {
    for (Tensor& layer : *cache) layer.index_copy_(0, places, layer.index_select(0, rows));
  }
}

Tensor CachedDecoder::step(const Tensor& ids, std::span<const std::int64_t> slots) {
  torch::NoGradGuard no_grad;
  Communicator* tp = groups_.tp.get();
  const ModelSpec& model = weights_.model();
  std::vector<std::int64_t> positions, places;
  for (const std::int64_t slot : slots) {
    TESSERA_CHECK(slot < slots_ && length(slot) < max_length_);
    const std::int64_t position = lengths_[static_cast<std::size_t>(slot)]++;
    positions.push_back(position);
    places.push_back(slot * max_length_ + position);
  }
  const auto [shortest, longest] = std::minmax_element(positions.begin(), positions.end());
  const std::int64_t keys = *longest + 1;
  const Tensor position = index_tensor(positions, weights_.device());
  const Tensor place = index_tensor(places, weights_.device());
  const Tensor mask = key_mask(position, keys, model.sliding_window, *shortest != *longest,
                               scalar_type(weights_.dtype));
  const RopeTable rope = rope_table(weights_.inverse_frequencies, model.rope.attention_factor,
                                    position, scalar_type(weights_.dtype));
  const HeadRange heads = head_range(model, weights_.layout.tp, weights_.coord.tp);
  const auto count = static_cast<std::int64_t>(slots.size());
  const Tensor chosen =
      counts_up(slots) ? Tensor() : index_tensor({slots.begin(), slots.end()}, weights_.device());
  const auto cached = [&](const Tensor& cache) {
    const Tensor all = cache.view({slots_, max_length_, heads.kv.size(), model.head_dim});
    const Tensor used = all.narrow(1, 0, keys);
    return chosen.defined() ? used.index_select(0, chosen) : used.narrow(0, slots.front(), count);
  };
  Tensor x = embed_tokens(weights_, ids, tp);
  for (std::size_t layer = 0; layer < weights_.rows.layers.size(); ++layer) {
    const LayerRows& rows = weights_.rows.layers[layer];
    const Tensor normed = rms_norm(x, weights_.tensor(rows.input_norm), model.norm_epsilon);
    const HeadStates states = project_heads(weights_, rows, normed, rope, tp);
    keys_[layer].index_copy_(0, place, states.k);
    values_[layer].index_copy_(0, place, states.v);
    const Tensor attended =
        attend_cached(heads, states.q, cached(keys_[layer]), cached(values_[layer]), mask);
    x = after_attention(weights_, rows, x, attended, tp);
  }
  return final_norm(weights_, x);
}

}  // namespace tessera
