#include "executor/attention/attention.h"

#include <ATen/ops/_flash_attention_forward.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

using torch::Tensor;

/// Sequences, longest first, in groups whose shortest member has at least half the longest's
/// length: padding at most doubles a projection's rows and most groups need none.
std::vector<std::vector<std::size_t>> group_by_length(std::span<const std::int64_t> lengths) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t sequence : order) {
    if (groups.empty() || lengths[groups.back().front()] > 2 * lengths[sequence]) {
      groups.emplace_back();
    }
    groups.back().push_back(sequence);
  }
  return groups;
}

Tensor on_device(const std::vector<std::int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

void plan_groups(AttentionPlan& plan, std::span<const std::int64_t> lengths, torch::Device device) {
  std::vector<std::int64_t> starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), std::int64_t{0});
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::int64_t> scatter(static_cast<std::size_t>(tokens));
  std::int64_t block_start = 0;
  for (const auto& members : group_by_length(lengths)) {
    LengthGroup group{static_cast<std::int64_t>(members.size()), lengths[members.front()], {}};
    std::vector<std::int64_t> rows(static_cast<std::size_t>(group.count * group.length), 0);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto padded = static_cast<std::int64_t>(i) * group.length;
      for (std::int64_t t = 0; t < lengths[members[i]]; ++t) {
        const std::int64_t token = starts[members[i]] + t;
        rows[static_cast<std::size_t>(padded + t)] = token;
        scatter[static_cast<std::size_t>(token)] = block_start + padded + t;
      }
    }
    block_start += group.count * group.length;
    group.gather = on_device(rows, device);
    plan.groups.push_back(std::move(group));
  }
  const bool in_order = plan.groups.size() == 1 && block_start == tokens;
  if (in_order) {
    plan.groups.front().gather = Tensor();
  } else {
    plan.scatter = on_device(scatter, device);
  }
}

/// The last `window` keys up to a query's own, bool [length, length].
Tensor window_mask(std::int64_t length, std::int64_t window, torch::Device device) {
  const Tensor position = torch::arange(length, torch::TensorOptions().device(device));
  const Tensor distance = position.unsqueeze(1) - position.unsqueeze(0);
  return (distance >= 0).logical_and_(distance < window);
}

/// q, k, v: [count * length, heads, head_dim]; the result is [count * length, heads * head_dim].
Tensor attend_block(const AttentionPlan& plan, const LengthGroup& group, const Tensor& q,
                    const Tensor& k, const Tensor& v) {
  const auto batched = [&](const Tensor& x) {
    return x.view({group.count, group.length, x.size(1), plan.head_dim}).transpose(1, 2);
  };
  const bool windowed = plan.window > 0 && group.length > plan.window;
  std::optional<Tensor> mask;
  if (windowed) mask = window_mask(group.length, plan.window, q.device());
  const Tensor out = at::scaled_dot_product_attention(batched(q), batched(k), batched(v), mask, 0.0,
                                                      /*is_causal=*/!windowed);
  return out.transpose(1, 2).reshape({group.count * group.length, -1});
}

Tensor attend_flash(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v) {
  std::optional<std::int64_t> left, right;
  if (plan.window > 0) {
    left = plan.window - 1;
    right = 0;
  }
  const Tensor out = std::get<0>(at::_flash_attention_forward(
      q, k, v, plan.offsets, plan.offsets, plan.longest, plan.longest, 0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, std::nullopt, left, right));
  return out.reshape({q.size(0), -1});
}

struct PackedAttention : torch::autograd::Function<PackedAttention> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q, const Tensor& k,
                        const Tensor& v, const fused::AttentionBatch& batch, std::int64_t window) {
    const fused::Attended result = fused::attend(batch, q, k, v, window);
    context->save_for_backward({q, k, v, result.out, result.stats, batch.lengths, batch.starts});
    context->saved_data["longest"] = batch.longest;
    context->saved_data["tokens"] = batch.tokens;
    context->saved_data["window"] = window;
    return result.out;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const fused::AttentionBatch batch{saved[5], saved[6], context->saved_data["longest"].toInt(),
                                      context->saved_data["tokens"].toInt()};
    const fused::HeadGradients d =
        fused::attend_backward(batch, saved[0], saved[1], saved[2], saved[3], saved[4],
                               gradients[0], context->saved_data["window"].toInt());
    return {d.q, d.k, d.v, Tensor(), Tensor()};
  }
};

Tensor attend_packed(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool recording =
      at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  const Tensor out = recording ? PackedAttention::apply(q, k, v, plan.batch, plan.window)
                               : fused::attend(plan.batch, q, k, v, plan.window).out;
  return out.view({q.size(0), -1});
}

}  // namespace

AttentionPlan plan_attention(const Weights& weights, std::span<const std::int64_t> lengths) {
  return plan_attention(weights, lengths,
                        head_range(weights.model(), weights.layout.tp, weights.coord.tp));
}

AttentionPlan plan_attention(const Weights& weights, std::span<const std::int64_t> lengths,
                             HeadRange heads) {
  const ModelSpec& model = weights.model();
  AttentionPlan plan{
      .heads = std::move(heads), .head_dim = model.head_dim, .window = model.sliding_window};
  plan.longest = *std::max_element(lengths.begin(), lengths.end());
  plan.packed =
      fused::attention_usable(weights.device(), scalar_type(weights.dtype), model.head_dim);
  if (plan.packed) {
    plan.batch = fused::attention_batch({lengths.begin(), lengths.end()}, weights.device());
    return plan;
  }
  plan.flash =
      weights.device().is_cuda() && weights.dtype != DType::fp32 && model.head_dim % 8 == 0;
  if (!plan.flash) {
    plan_groups(plan, lengths, weights.device());
    return plan;
  }
  std::vector<std::int32_t> offsets{0};
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
  }
  plan.offsets = torch::tensor(offsets, torch::kInt32).to(weights.device());
  return plan;
}

Tensor repeat_kv(const Tensor& x, const HeadRange& heads, std::int64_t dim) {
  const std::int64_t queries = heads.query.size(), kv = heads.kv.size();
  if (queries == kv && heads.uniform()) return x;
  if (heads.uniform()) {
    std::vector<std::int64_t> shape = x.sizes().vec(), result = shape;
    shape.insert(shape.begin() + dim + 1, queries / kv);
    result[static_cast<std::size_t>(dim)] = queries;
    return x.unsqueeze(dim + 1).expand(shape).reshape(result);
  }
  return x.index_select(dim, torch::tensor(heads.kv_of_query, torch::kInt64).to(x.device()));
}

Tensor attend(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v) {
  if (plan.packed || plan.flash) {
    const auto kernel = plan.packed ? attend_packed : attend_flash;
    if (plan.heads.uniform()) return kernel(plan, q, k, v);
    return kernel(plan, q, repeat_kv(k, plan.heads, 1), repeat_kv(v, plan.heads, 1));
  }
  const Tensor keys = repeat_kv(k, plan.heads, 1), values = repeat_kv(v, plan.heads, 1);
  std::vector<Tensor> blocks;
  for (const LengthGroup& group : plan.groups) {
    if (!group.gather.defined()) {
      blocks.push_back(
          attend_block(plan, group, q.contiguous(), keys.contiguous(), values.contiguous()));
      continue;
    }
    blocks.push_back(attend_block(plan, group, q.index_select(0, group.gather),
                                  keys.index_select(0, group.gather),
                                  values.index_select(0, group.gather)));
  }
  const Tensor all = blocks.size() == 1 ? blocks.front() : torch::cat(blocks);
  return plan.scatter.defined() ? all.index_select(0, plan.scatter) : all;
}

}  // namespace tessera
