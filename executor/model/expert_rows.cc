#include "executor/model/expert_rows.h"

#include <numeric>

#include "cost_models/spec/split.h"
#include "executor/tensor/gradient_products.h"
#include "executor/tensor/to_device.h"
#include "executor/weights/weights.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Whose place each of a permutation's entries takes.
Tensor inverse_of(const Tensor& order) {
  Tensor places = torch::empty_like(order);
  places.index_copy_(0, order, torch::arange(order.size(0), order.options()));
  return places;
}

struct Spread : torch::autograd::Function<Spread> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& order,
                        const Tensor& places, std::int64_t per_token) {
    context->save_for_backward({places});
    context->saved_data["per_token"] = per_token;
    return x.index_select(0, order.div(per_token, "floor"));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor places = context->get_saved_variables()[0];
    const std::int64_t per_token = context->saved_data["per_token"].toInt();
    const Tensor g = gradients[0].index_select(0, places).unflatten(0, {-1, per_token});
    return {g.sum(1), Tensor(), Tensor(), Tensor()};
  }
};

/// [tokens, k, hidden] times [tokens, k], summed over k: in fp32 where the types differ.
Tensor weighted_sum(const Tensor& rows, const Tensor& weights) {
  const bool wide = rows.scalar_type() != weights.scalar_type();
  const Tensor products = wide ? rows.to(weights.scalar_type()) : rows;
  return at::bmm(weights.unsqueeze(1), products).squeeze(1).to(rows.scalar_type());
}

struct Combine : torch::autograd::Function<Combine> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& weights,
                        const Tensor& order, const Tensor& places) {
    context->save_for_backward({rows, weights, order, places});
    return weighted_sum(rows.index_select(0, places).unflatten(0, {-1, weights.size(1)}), weights);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &rows = saved[0], &weights = saved[1], &order = saved[2], &places = saved[3];
    const std::int64_t per_token = weights.size(1);
    const Tensor g = gradients[0].to(weights.scalar_type());
    const Tensor each = weights.reshape({-1, 1}).index_select(0, order);
    const Tensor of_rows = g.index_select(0, order.div(per_token, "floor")).mul_(each);
    const Tensor chosen = rows.index_select(0, places).unflatten(0, {-1, per_token});
    const Tensor of_weights = at::bmm(chosen.to(g.scalar_type()), g.unsqueeze(2)).squeeze(2);
    return {of_rows.to(rows.scalar_type()), of_weights, Tensor(), Tensor()};
  }
};

/// Rows of x by peer go out, `received` of them come in by peer.
Tensor exchanged(const Tensor& x, const std::vector<std::int64_t>& sent,
                 const std::vector<std::int64_t>& received, Communicator& group) {
  const Tensor out = x.contiguous();
  const std::int64_t width = out.size(1), bytes = width * out.element_size();
  Tensor in =
      torch::empty({std::accumulate(received.begin(), received.end(), std::int64_t{0}), width},
                   out.options().requires_grad(false));
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  const auto* from = static_cast<const std::byte*>(out.const_data_ptr());
  auto* to = static_cast<std::byte*>(in.mutable_data_ptr());
  for (int peer = 0; peer < group.size(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const std::int64_t sending = sent[index] * bytes, receiving = received[index] * bytes;
    if (sending > 0) sends.push_back({peer, from, static_cast<std::size_t>(sending)});
    if (receiving > 0) receives.push_back({peer, to, static_cast<std::size_t>(receiving)});
    from += sending;
    to += receiving;
  }
  group.exchange(sends, receives);
  return in;
}

/// To the experts: exchanged, then sorted; back: the other way round.
Tensor travelled(const Tensor& x, const Dispatch& dispatch, bool to_experts) {
  if (to_experts) {
    return exchanged(x, dispatch.sent, dispatch.received, *dispatch.group)
        .index_select(0, dispatch.order);
  }
  return exchanged(x.index_select(0, dispatch.places), dispatch.received, dispatch.sent,
                   *dispatch.group);
}

struct Travel : torch::autograd::Function<Travel> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dispatch& dispatch,
                        bool to_experts) {
    context->save_for_backward({dispatch.order, dispatch.places});
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(dispatch.group);
    context->saved_data["sent"] = dispatch.sent;
    context->saved_data["received"] = dispatch.received;
    context->saved_data["to_experts"] = to_experts;
    return travelled(x, dispatch, to_experts);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Dispatch dispatch{
        .group = reinterpret_cast<Communicator*>(context->saved_data["group"].toInt()),
        .sent = context->saved_data["sent"].toIntVector(),
        .received = context->saved_data["received"].toIntVector(),
        .order = saved[0],
        .places = saved[1],
        .rows = {}};
    const bool back = !context->saved_data["to_experts"].toBool();
    return {travelled(gradients[0], dispatch, back), Tensor(), Tensor()};
  }
};

}  // namespace

SortedChoices sort_choices(const Tensor& chosen, std::int64_t experts) {
  const Tensor flat = chosen.reshape({-1});
  const Tensor order = std::get<1>(flat.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false));
  const Tensor counts =
      torch::zeros({experts}, flat.options()).scatter_add_(0, flat, torch::ones_like(flat));
  return {chosen.size(1), order, inverse_of(order), counts};
}

Tensor spread(const Tensor& x, const SortedChoices& choices) {
  if (recording({&x})) {
    return Spread::apply(x, choices.order, choices.places, choices.per_token);
  }
  return x.index_select(0, choices.order.div(choices.per_token, "floor"));
}

Tensor combine(const Tensor& rows, const Tensor& weights, const SortedChoices& choices) {
  if (recording({&rows, &weights})) {
    return Combine::apply(rows, weights, choices.order, choices.places);
  }
  return weighted_sum(rows.index_select(0, choices.places).unflatten(0, {-1, choices.per_token}),
                      weights);
}

Dispatch plan_dispatch(const SortedChoices& choices, Communicator& group) {
  const std::int64_t experts = choices.counts.size(0), ranks = group.size();
  Tensor all = torch::empty({ranks, experts}, choices.counts.options());
  group.all_gather(choices.counts.const_data_ptr(), all.mutable_data_ptr(),
                   static_cast<std::size_t>(experts), DType::int64);
  const Tensor host = all.cpu();
  const Interval own = split(experts, ranks, group.rank());
  Dispatch dispatch{.group = &group};
  for (std::int64_t peer = 0; peer < ranks; ++peer) {
    const Interval theirs = split(experts, ranks, peer);
    const auto sum = [&](std::int64_t rank, Interval range) {
      return host[rank].narrow(0, range.lo, range.size()).sum().item<std::int64_t>();
    };
    dispatch.sent.push_back(sum(group.rank(), theirs));
    dispatch.received.push_back(sum(peer, own));
  }
  const Tensor mine = host.narrow(1, own.lo, own.size()).contiguous();  // [ranks, own experts]
  const Tensor expert = torch::arange(own.size(), torch::kLong).repeat({ranks});
  const Tensor order = std::get<1>(expert.repeat_interleave(mine.view({-1}))
                                       .sort(/*stable=*/true, /*dim=*/0, /*descending=*/false));
  const torch::Device device = choices.counts.device();
  const Tensor counts = mine.sum(0);
  dispatch.order = to_device(order, device);
  dispatch.places = to_device(inverse_of(order), device);
  dispatch.rows = expert_rows(to_device(counts, device));
  const auto* const first = counts.const_data_ptr<std::int64_t>();
  dispatch.rows.host.assign(first, first + counts.numel());
  return dispatch;
}

Tensor send_to_experts(const Tensor& sorted, const Dispatch& dispatch) {
  return recording({&sorted}) ? Travel::apply(sorted, dispatch, true)
                              : travelled(sorted, dispatch, true);
}

Tensor send_back(const Tensor& rows, const Dispatch& dispatch) {
  return recording({&rows}) ? Travel::apply(rows, dispatch, false)
                            : travelled(rows, dispatch, false);
}

}  // namespace tessera
