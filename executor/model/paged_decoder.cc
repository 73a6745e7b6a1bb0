#include "executor/model/paged_decoder.h"

#include <limits>

#include "cost_models/documents/check.h"
#include "cost_models/spec/expert_parallel.h"
#include "executor/attention/attention.h"
#include "executor/comm/groups.h"
#include "executor/model/decoder_layer.h"
#include "executor/model/ordered_attention.h"
#include "executor/model/ordered_ops.h"
#include "executor/tensor/fused_settings.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Keys (or values) of every row, [rows, kv_heads, longest, head_dim].
Tensor gathered(const fused::PagedRows& rows, const Tensor& cache) {
  const std::int64_t page = cache.size(2), count = (rows.longest_keys + page - 1) / page;
  const Tensor table = rows.page_table.narrow(1, 0, count).to(at::kLong).reshape({-1});
  return cache.index_select(0, table)
      .view({rows.rows, count, cache.size(1), page, cache.size(3)})
      .transpose(1, 2)
      .reshape({rows.rows, cache.size(1), count * page, cache.size(3)})
      .narrow(2, 0, rows.longest_keys);
}

/// An addend to scores [rows, 1, queries, keys]: which keys each query of a row does not see.
Tensor hidden_keys(const fused::PagedRows& rows, std::int64_t window, at::ScalarType type) {
  const auto options = rows.key_lengths.options().dtype(at::kLong);
  const Tensor key = torch::arange(rows.longest_keys, options).view({1, 1, 1, -1});
  const Tensor query = torch::arange(rows.longest_queries, options).view({1, 1, -1, 1});
  const Tensor first =
      (rows.key_lengths - rows.query_lengths).to(at::kLong).view({rows.rows, 1, 1, 1});
  const Tensor position = first + query;
  Tensor hidden = key > position;
  if (window > 0) hidden.logical_or_(key <= position - window);
  return torch::zeros(hidden.sizes(), options.dtype(type))
      .masked_fill_(hidden, -std::numeric_limits<float>::infinity());
}

/// Attention by LibTorch: queries padded to the longest row; the query heads of one KV head are
/// rows of one block, so that keys and values are not repeated.
Tensor attend_gathered(const fused::PagedRows& rows, const HeadRange& heads, const Tensor& q,
                       const fused::PagedCache& cache, std::int64_t window) {
  Tensor k = gathered(rows, cache.keys), v = gathered(rows, cache.values);
  if (!heads.uniform()) {
    k = repeat_kv(k, heads, 1);
    v = repeat_kv(v, heads, 1);
  }
  const std::int64_t longest = rows.longest_queries, kv = k.size(1), dim = q.size(2);
  const std::int64_t share = q.size(1) / kv;
  Tensor padded = q, kept;
  if (longest > 1) {
    const auto options = rows.query_starts.options().dtype(at::kLong);
    const Tensor within = torch::arange(longest, options).unsqueeze(0);
    const Tensor lengths = rows.query_lengths.to(at::kLong).unsqueeze(1);
    const Tensor starts = rows.query_starts.narrow(0, 0, rows.rows).to(at::kLong).unsqueeze(1);
    kept = (within < lengths).reshape({-1}).nonzero().squeeze(1);
    padded = q.index_select(0, (starts + within.minimum(lengths - 1)).reshape({-1}));
  }
  const Tensor blocks = padded.view({rows.rows, longest, kv, share, dim})
                            .permute({0, 2, 3, 1, 4})
                            .reshape({rows.rows, kv, share * longest, dim});
  const Tensor addend = hidden_keys(rows, window, q.scalar_type())
                            .unsqueeze(2)
                            .expand({rows.rows, 1, share, longest, rows.longest_keys})
                            .reshape({rows.rows, 1, share * longest, rows.longest_keys})
                            .expand({rows.rows, kv, share * longest, rows.longest_keys});
  const Tensor out = at::scaled_dot_product_attention(blocks, k, v, addend)
                         .view({rows.rows, kv, share, longest, dim})
                         .permute({0, 3, 1, 2, 4})
                         .reshape({rows.rows * longest, kv * share, dim});
  return kept.defined() ? out.index_select(0, kept) : out;
}

}  // namespace

PagedDecoder::PagedDecoder(const Weights& weights, const ParallelGroups& groups, SumOrder order)
    : weights_(weights),
      groups_(groups),
      order_(order),
      heads_(head_range(weights.model(), weights.layout.tp, weights.coord.tp)) {
  TESSERA_CHECK(weights.layout.pp == 1 && weights.layout.cp == 1 &&
                served_expert_refusal(weights.model(), weights.layout).empty());
}

std::int64_t PagedDecoder::page_bytes(std::int64_t page_tokens) const {
  const ModelSpec& model = weights_.model();
  return 2 * model.layers * heads_.kv.size() * page_tokens * model.head_dim *
         size_of(weights_.dtype);
}

void PagedDecoder::place(const Tensor& memory, std::int64_t pages, std::int64_t page_tokens,
                         std::int64_t longest) {
  const ModelSpec& model = weights_.model();
  const std::vector<std::int64_t> shape{pages, heads_.kv.size(), page_tokens, model.head_dim};
  const std::int64_t elements = pages * heads_.kv.size() * page_tokens * model.head_dim;
  layers_.clear();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    layers_.push_back({memory.narrow(0, 2 * layer * elements, elements).view(shape),
                       memory.narrow(0, (2 * layer + 1) * elements, elements).view(shape)});
  }
  longest_ = longest;
  const auto make_rope = order_ == SumOrder::fixed ? ordered_rope_table : rope_table;
  rope_ = make_rope(weights_.inverse_frequencies, model.rope.attention_factor,
                    torch::arange(longest, torch::TensorOptions().device(weights_.device())),
                    scalar_type(weights_.dtype));
}

bool PagedDecoder::windowed() const {
  const std::int64_t window = weights_.model().sliding_window;
  return window > 0 && longest_ > window;
}

/// Stores keys and values and returns the queries, [tokens, heads, head_dim].
Tensor PagedDecoder::store(const LayerRows& rows, const Tensor& normed, const PagedBatch& batch,
                           const fused::PagedCache& cache, const TensorParallel& tp) const {
  if (fused::usable(normed) && weights_.model().head_dim <= 256) {
    return project_and_store(weights_, rows, normed, rope_, batch.positions, batch.places, cache,
                             tp);
  }
  const RopeTable rope{rope_.cos.index_select(0, batch.positions),
                       rope_.sin.index_select(0, batch.positions)};
  const HeadStates heads = project_heads(weights_, rows, normed, rope, tp);
  const std::int64_t page = cache.keys.size(2);
  const Tensor pages = batch.places.div(page, "floor"), within = batch.places.remainder(page);
  cache.keys.transpose(1, 2).index_put_({pages, within}, heads.k);
  cache.values.transpose(1, 2).index_put_({pages, within}, heads.v);
  return heads.q;
}

Tensor PagedDecoder::attend(const fused::PagedRows& rows, const Tensor& q,
                            const fused::PagedCache& cache) const {
  if (order_ == SumOrder::fixed) {
    return attend_in_order(rows, heads_, q, cache, weights_.model().sliding_window);
  }
  const bool paged = heads_.uniform() && !windowed() &&
                     fused::attention_usable(q.device(), q.scalar_type(), q.size(2));
  // cuDNN's kernel adds up the keys beyond a page in an order that differs from run to run.
  const bool repeats = fused::deterministic() && ordered_heads(q.size(2));
  if (paged) {
    return repeats ? fused::attend_in_order(rows, q, cache, 0)
                   : fused::attend_paged(rows, q, cache);
  }
  return attend_gathered(rows, heads_, q, cache, windowed() ? weights_.model().sliding_window : 0);
}

Tensor PagedDecoder::forward(const PagedBatch& batch) const {
  const torch::NoGradGuard no_grad;
  TensorParallel tp = groups_.tp.get();
  tp.order = order_;
  const double epsilon = weights_.model().norm_epsilon;
  Tensor hidden = embed_tokens(weights_, batch.ids, tp);
  Tensor normed =
      rms_norm(hidden, weights_.tensor(weights_.rows.layers.front().input_norm), epsilon);
  const RouterReplay noted{.noted = batch.experts};
  std::int64_t routed = 0;  // layers so far
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const LayerRows& rows = weights_.rows.layers[layer];
    const fused::PagedCache& cache = layers_[layer];
    const Tensor q = store(rows, normed, batch, cache, tp);
    std::vector<Tensor> attended;
    std::int64_t first = 0;
    for (const fused::PagedRows* part : {&batch.decode, &batch.prefill}) {
      if (part->rows == 0) continue;
      attended.push_back(attend(*part, q.narrow(0, first, part->tokens), cache));
      first += part->tokens;
    }
    const Tensor all = attended.size() == 1 ? attended.front() : torch::cat(attended);
    const Tensor projected =
        row_parallel(all.reshape({q.size(0), -1}), weights_.tensor(rows.o),
                     weights_.tensor(rows.o_bias), tp, weights_.adapter(rows.o));
    const auto [sum, between] =
        add_rms_norm(projected, hidden, weights_.tensor(rows.post_norm), epsilon);
    ExpertOptions experts{.group = groups_.ep.get(), .even = groups_.ep && batch.even};
    if (rows.routed()) experts.replay = noted.of_layer(routed++);
    Tensor product = feed_forward(weights_, rows, between, tp, experts);
    const bool last = layer + 1 == layers_.size();
    hidden = sum;
    if (last && batch.chosen.defined()) {
      hidden = hidden.index_select(0, batch.chosen);
      product = product.index_select(0, batch.chosen);
    }
    const int norm = last ? weights_.rows.final_norm : weights_.rows.layers[layer + 1].input_norm;
    const auto [next, next_normed] = add_rms_norm(product, hidden, weights_.tensor(norm), epsilon);
    hidden = next;
    normed = next_normed;
  }
  // Ranks that bring a share of the rows each have noted theirs among zeros; those that cut the
  // same experts have noted the same.
  if (batch.experts.defined() && weights_.layout.etp != weights_.layout.tp) {
    Tensor bytes = batch.experts.view(torch::kByte);
    if (weights_.coord.tp % weights_.layout.etp != 0) bytes.zero_();
    all_reduce_(bytes, groups_.tp.get());
  }
  return normed;
}

void PagedDecoder::join() const {
  const torch::NoGradGuard no_grad;
  const Tensor none =
      torch::empty({0, weights_.model().hidden}, weights_.storage.options().requires_grad(false));
  for (const LayerRows& rows : weights_.rows.layers) {
    if (rows.routed()) {
      feed_forward(weights_, rows, none, groups_.tp.get(), {.group = groups_.ep.get()});
    }
  }
}

void PagedDecoder::copy_pages(const Tensor& from, const Tensor& to) const {
  const torch::NoGradGuard no_grad;
  for (const fused::PagedCache& cache : layers_) {
    cache.keys.index_copy_(0, to, cache.keys.index_select(0, from));
    cache.values.index_copy_(0, to, cache.values.index_select(0, from));
  }
}

}  // namespace tessera
