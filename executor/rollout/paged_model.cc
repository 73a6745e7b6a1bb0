#include "executor/rollout/paged_model.h"

#include <c10/cuda/CUDAEvent.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "cost_models/documents/check.h"
#include "executor/comm/groups.h"
#include "executor/model/decoder.h"
#include "executor/model/experts.h"
#include "executor/model/scores.h"
#include "executor/rollout/captured_graph.h"
#include "executor/rollout/pass_tensors.h"
#include "executor/tensor/fused.h"

namespace tessera {
namespace {

using torch::Tensor;

bool restricts(const SamplingOptions& options, std::int64_t vocabulary) {
  return (options.top_k > 0 && options.top_k < vocabulary) || options.top_p < 1;
}

/// In pinned memory, without waiting for it.
Tensor on_host(const Tensor& x) {
  if (x.is_cpu()) return x;
  Tensor host = torch::empty(x.sizes(), x.options().device(torch::kCPU).pinned_memory(true));
  host.copy_(x, /*non_blocking=*/true);
  return host;
}

}  // namespace

struct PagedModel::Captured {
  PassArrays arrays;  // on the device
  PassTensors inputs;
  Results results;
  std::unique_ptr<CapturedGraph> graph;
};

struct PagedModel::Launched {
  Results results;                           // on the host, once `done`
  std::optional<c10::cuda::CUDAEvent> done;  // none on the CPU
  std::int64_t decoded = 0, padded = 0;      // decode rows that are sequences; all of them
};

PagedModel::PagedModel(const Weights& weights, const ParallelGroups& groups,
                       const CacheShape& shape, const Tensor& memory, SumOrder order)
    : weights_(weights),
      groups_(groups),
      shape_(shape),
      order_(order),
      decoder_(weights, groups, order),
      grouped_(grouped_experts(weights)) {
  decoder_.place(memory, cache_pages(shape), shape.page_tokens,
                 shape.row_pages * shape.page_tokens);
  last_tokens_ = torch::zeros({shape.slots + 1},
                              torch::TensorOptions().dtype(torch::kLong).device(weights.device()));
}

PagedModel::~PagedModel() = default;

std::int64_t PagedModel::padded_rows(std::int64_t rows) {
  if (rows <= 16) return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  const std::int64_t unit = rows <= 64 ? 16 : rows <= 256 ? 32 : 64;
  return (rows + unit - 1) / unit * unit;
}

PassArrays PagedModel::packed(const Pass& pass, std::int64_t padded) const {
  const bool cuda = weights_.device().is_cuda();
  return pack_pass(pass, padded, shape_.row_pages, shape_.page_tokens,
                   {.page = static_cast<std::int32_t>(shape_.pages), .slot = shape_.slots}, cuda,
                   cuda);
}

void PagedModel::launch(const Pass& pass) {
  const torch::NoGradGuard no_grad;
  const auto decoded = static_cast<std::int64_t>(pass.decode.size());
  const Agreed agreed = agree(/*works=*/true, pass.prefill.empty(), decoded);
  const bool shared = groups_.ep != nullptr;
  const bool pads = shared ? agreed.even : weights_.device().is_cuda() && decoded > 0;
  const std::int64_t padded = pads ? padded_rows(agreed.rows) : decoded;
  const PassArrays host = packed(pass, padded);
  const Results results = computed(host, agreed.even);
  Launched launched{.decoded = decoded, .padded = padded};
  if (host.counts.draws() > 0) {
    const DrawnRows& drawn = results.drawn;
    launched.results.drawn = {on_host(drawn.tokens), on_host(drawn.log_probs)};
  }
  if (results.experts.defined()) launched.results.experts = on_host(results.experts);
  if (weights_.device().is_cuda()) launched.done.emplace().record();
  launched_.push_back(std::move(launched));
}

PagedModel::Results PagedModel::computed(const PassArrays& host, bool even) {
  if (weights_.device().is_cuda() && even && grouped_) return replay(host);
  const PassArrays there{host.counts, host.words.to(weights_.device(), /*non_blocking=*/true),
                         host.halves.to(weights_.device(), /*non_blocking=*/true)};
  return run(tensors_of(there), even);
}

/// A pass that only decodes: the first of its size runs and is captured then.
PagedModel::Results PagedModel::replay(const PassArrays& host) {
  std::unique_ptr<Captured>& entry = graphs_[{host.counts.decode_rows, notes_experts_, sampling_}];
  if (entry) {
    entry->arrays.words.copy_(host.words, /*non_blocking=*/true);
    entry->arrays.halves.copy_(host.halves, /*non_blocking=*/true);
    entry->graph->replay();
    return entry->results;
  }
  entry = std::make_unique<Captured>();
  entry->arrays = {host.counts, host.words.to(weights_.device(), /*non_blocking=*/true),
                   host.halves.to(weights_.device(), /*non_blocking=*/true)};
  // Any pass of this size: keys up to the longest text.
  entry->arrays.counts.longest_keys = shape_.row_pages * shape_.page_tokens;
  entry->inputs = tensors_of(entry->arrays);
  const Results results = run(entry->inputs, /*even=*/true);
  Captured& captured = *entry;
  captured.graph = std::make_unique<CapturedGraph>(
      [&] { captured.results = run(captured.inputs, /*even=*/true); }, first_graph_);
  if (first_graph_ == nullptr) first_graph_ = captured.graph.get();
  return results;
}

torch::Tensor PagedModel::room_for_experts(std::int64_t tokens) const {
  if (!notes_experts_) return {};
  const ModelSpec& model = weights_.model();
  return torch::zeros(
      {routed_layers(weights_, {0, model.layers}), tokens, model.moe->experts_per_token},
      torch::TensorOptions().dtype(torch::kShort).device(weights_.device()));
}

PagedModel::Results PagedModel::run(const PassTensors& inputs, bool even) {
  const PassCounts& counts = inputs.counts;
  Tensor ids = inputs.prefill_ids;
  if (counts.decode_rows > 0) {
    const Tensor last = last_tokens_.index_select(0, inputs.slots.narrow(0, 0, counts.decode_rows));
    ids = counts.prefill_tokens > 0 ? torch::cat({last, ids}) : last;
  }
  const Tensor experts = room_for_experts(counts.tokens());
  const Tensor hidden = decoder_.forward({.ids = ids,
                                          .positions = inputs.positions,
                                          .places = inputs.places,
                                          .decode = inputs.decode,
                                          .prefill = inputs.prefill,
                                          .even = even,
                                          .chosen = inputs.chosen,
                                          .experts = experts});
  if (counts.copies > 0) decoder_.copy_pages(inputs.copy_from, inputs.copy_to);
  if (counts.draws() == 0) return {.drawn = {}, .experts = experts};
  return {.drawn = draw(hidden, inputs), .experts = experts};
}

DrawnRows PagedModel::draw(const Tensor& hidden, const PassTensors& inputs) {
  if (fused::usable(hidden) && !restricts(sampling_, weights_.model().vocab)) {
    const Tensor own = own_logits(weights_, hidden, order_);
    const fused::DrawRows rows{inputs.rows, inputs.uniforms, inputs.slots, last_tokens_};
    const std::int64_t least = least_weight(sampling_);
    const fused::Drawn drawn =
        groups_.tp == nullptr || groups_.tp->size() == 1
            ? fused::draw_tokens(sampling_.temperature, least, own, rows)
            : fused::draw_over_columns(sampling_.temperature, least, own, vocab_range(weights_).lo,
                                       rows, *groups_.tp);
    return {drawn.tokens, drawn.log_probs};
  }
  const Tensor logits = full_logits(weights_, groups_, hidden, order_);
  DrawnRows drawn;
  if (logits.is_cpu()) {
    const auto draws = static_cast<std::size_t>(inputs.rows.size(0));
    const std::vector<Draw> sampled =
        sample_rows(logits, {inputs.rows.const_data_ptr<std::int64_t>(), draws},
                    {inputs.uniforms.const_data_ptr<double>(), draws}, sampling_);
    drawn = {torch::empty({inputs.rows.size(0)}, torch::kInt),
             torch::empty({inputs.rows.size(0)}, torch::kFloat)};
    for (std::size_t i = 0; i < draws; ++i) {
      drawn.tokens.data_ptr<std::int32_t>()[i] = sampled[i].token;
      drawn.log_probs.data_ptr<float>()[i] = sampled[i].log_prob;
    }
  } else {
    drawn = draw_rows(logits, inputs.rows, inputs.uniforms, sampling_);
    if (order_ == SumOrder::fixed) {  // by the kernel that scores them, bit for bit
      drawn.log_probs =
          fused::drawn_log_probs(sampling_.temperature, logits.index_select(0, inputs.rows),
                                 drawn.tokens.clamp_min(0).to(torch::kLong));
    }
  }
  last_tokens_.index_put_({inputs.slots}, drawn.tokens.clamp_min(0).to(torch::kLong));
  return drawn;
}

PagedModel::Agreed PagedModel::agree(bool works, bool decodes_only, std::int64_t rows) const {
  if (groups_.ep == nullptr) return {.works = works, .even = decodes_only, .rows = rows};
  const bool uneven = !decodes_only || !grouped_;
  Tensor most = torch::tensor({works ? 1 : 0, uneven ? 1 : 0, static_cast<int>(rows)}, torch::kLong)
                    .to(weights_.device());
  all_reduce_(most, groups_.ep.get(), ReduceOp::max);
  const Tensor host = most.cpu();
  const auto* const agreed = host.const_data_ptr<std::int64_t>();
  return {.works = agreed[0] == 1, .even = agreed[1] == 0, .rows = agreed[2]};
}

void PagedModel::join_others() {
  const torch::NoGradGuard no_grad;
  for (;;) {
    const Agreed agreed = agree(/*works=*/false, /*decodes_only=*/true, 0);
    if (!agreed.works) return;
    if (agreed.even) {
      computed(packed({}, padded_rows(agreed.rows)), /*even=*/true);
    } else {
      decoder_.join();
    }
  }
}

std::vector<Draw> PagedModel::collect() {
  TESSERA_CHECK(!launched_.empty());
  Launched launched = std::move(launched_.front());
  launched_.pop_front();
  if (launched.done) launched.done->synchronize();
  const auto without_padding = [&](const Tensor& x) {
    if (launched.padded == launched.decoded) return x;
    return torch::cat({x.narrow(0, 0, launched.decoded), x.slice(0, launched.padded)});
  };
  routed_experts_.clear();
  if (const Tensor& experts = launched.results.experts; experts.defined()) {
    const Tensor by_token = without_padding(experts.transpose(0, 1)).contiguous();
    const auto* first = by_token.const_data_ptr<std::int16_t>();
    routed_experts_.assign(first, first + by_token.numel());
  }
  const DrawnRows& drawn = launched.results.drawn;
  if (!drawn.tokens.defined()) return {};
  return draws_of({without_padding(drawn.tokens), without_padding(drawn.log_probs)});
}

}  // namespace tessera
