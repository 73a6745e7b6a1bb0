#include "executor/attention/context_attention.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "planner/plan/plan.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using SharedPlan = std::shared_ptr<const ContextPlan>;

struct KeptPlan : torch::CustomClassHolder {
  explicit KeptPlan(SharedPlan p) : plan(std::move(p)) {}
  SharedPlan plan;
};

void keep(AutogradContext* context, const SharedPlan& plan) {
  context->saved_data["plan"] = c10::IValue::make_capsule(c10::make_intrusive<KeptPlan>(plan));
}

const SharedPlan& kept(AutogradContext* context) {
  const auto capsule = context->saved_data["plan"].toCapsule();
  return static_cast<KeptPlan*>(capsule.get())->plan;
}

bool recording(const Tensor& q, const Tensor& k, const Tensor& v) {
  return at::GradMode::is_enabled() &&
         (q.requires_grad() || k.requires_grad() || v.requires_grad());
}

// ---- ring

/// Blocks on their way from the previous rank, this rank's to the next.
struct Transfer {
  Tensor sent, received;
  SideStream::Moment done;
};

Transfer send_on(const ContextPlan& plan, Tensor block, std::int64_t rows_to_come) {
  Transfer transfer{.sent = std::move(block)};
  std::vector<std::int64_t> shape = transfer.sent.sizes().vec();
  shape[1] = rows_to_come;
  transfer.received = torch::empty(shape, transfer.sent.options());
  const SideStream& side = plan.parallel.side;
  transfer.done = side.run(side.now(), [&] {
    const ContextSlice& slice = plan.slice;
    Communicator& lane = plan.parallel.lane != nullptr ? *plan.parallel.lane : *plan.parallel.group;
    std::vector<SendBlock> sends;
    std::vector<ReceiveBlock> receives;
    if (transfer.sent.numel() > 0) {
      sends.push_back(
          {(slice.rank + 1) % slice.size, transfer.sent.const_data_ptr(), transfer.sent.nbytes()});
    }
    if (transfer.received.numel() > 0) {
      receives.push_back({(slice.rank + slice.size - 1) % slice.size,
                          transfer.received.mutable_data_ptr(), transfer.received.nbytes()});
    }
    lane.exchange(sends, receives);
  });
  return transfer;
}

Tensor arrived(const ContextPlan& plan, const Transfer& transfer) {
  plan.parallel.side.wait(transfer.done);
  return transfer.received;
}

/// Rows of the block that is here after `step` transfers.
std::int64_t rows_at(const ContextPlan& plan, int step) {
  const ContextSlice& slice = plan.slice;
  return plan.rows[static_cast<std::size_t>((slice.rank + slice.size - step) % slice.size)];
}

Tensor keys_and_values(const Tensor& k, const Tensor& v) { return torch::stack({k, v}); }

/// Adds one part of a softmax to what there is of it, fp32.
void merge(Tensor& out, Tensor& lse, const AttentionPart& part, const PartOutput& more) {
  const Tensor before = rows_of(lse, part.q_rows);
  const Tensor sum = torch::logaddexp(before, more.lse);
  const Tensor merged =
      rows_of(out, part.q_rows)
          .mul((before - sum).exp_().unsqueeze(2))
          .add_(more.out.to(torch::kFloat32).mul((more.lse - sum).exp_().unsqueeze(2)));
  if (part.q_rows.defined()) {
    lse.index_copy_(0, part.q_rows, sum);
    out.index_copy_(0, part.q_rows, merged);
  } else {
    lse = sum;
    out = merged;
  }
}

PartOutput ring_forward(const ContextPlan& plan, const Tensor& q, const Tensor& k,
                        const Tensor& v) {
  const int size = plan.slice.size;
  Tensor out, lse;
  Tensor block = keys_and_values(k, v);
  for (int step = 0; step < size; ++step) {
    const bool last = step + 1 == size;
    const Transfer next = last ? Transfer{} : send_on(plan, block, rows_at(plan, step + 1));
    const AttentionPart& part = plan.parts[static_cast<std::size_t>(step)];
    if (!part.empty()) {
      const PartOutput more = attend_part(part, q, block[0], block[1]);
      if (!out.defined()) {  // a rank's own tokens: all of its rows
        out = more.out.to(torch::kFloat32);
        lse = more.lse;
      } else {
        merge(out, lse, part, more);
      }
    }
    if (!last) block = arrived(plan, next);
  }
  if (!out.defined()) {
    out = torch::zeros(q.sizes(), q.options().dtype(torch::kFloat32));
    lse = torch::zeros({q.size(0), q.size(1)}, out.options());
  }
  return {out.to(q.scalar_type()), lse};
}

void add_rows(Tensor& sum, const Tensor& rows, const Tensor& more) {
  if (rows.defined()) {
    sum.index_add_(0, rows, more.to(torch::kFloat32));
  } else {
    sum.add_(more);
  }
}

/// Gradients of blocks follow the blocks: what arrives here for a step's block has the parts of all
/// ranks that the block has passed, and after the last step this rank's own comes home.
PartGradients ring_backward(const ContextPlan& plan, const Tensor& q, const Tensor& k,
                            const Tensor& v, const PartOutput& whole, const Tensor& gradient) {
  const int size = plan.slice.size;
  const auto fp32 = q.options().dtype(torch::kFloat32).requires_grad(false);
  Tensor d_q = torch::zeros(q.sizes(), fp32);
  Tensor block = keys_and_values(k, v);
  Transfer following;
  for (int step = 0; step < size; ++step) {
    const bool last = step + 1 == size;
    const Transfer next = last ? Transfer{} : send_on(plan, block, rows_at(plan, step + 1));
    const AttentionPart& part = plan.parts[static_cast<std::size_t>(step)];
    PartGradients more;
    if (!part.empty()) {
      more = attend_part_backward(part, q, block[0], block[1], whole.out, whole.lse, gradient);
      add_rows(d_q, part.q_rows, more.q);
    }
    Tensor d_block = step == 0 ? torch::zeros(block.sizes(), fp32) : arrived(plan, following);
    if (!part.empty()) {
      Tensor d_k = d_block[0], d_v = d_block[1];
      add_rows(d_k, part.k_rows, more.k);
      add_rows(d_v, part.k_rows, more.v);
    }
    following = send_on(plan, d_block, rows_at(plan, step + 1));
    if (!last) block = arrived(plan, next);
  }
  const Tensor home = arrived(plan, following);
  return {d_q.to(q.scalar_type()), home[0].to(k.scalar_type()), home[1].to(v.scalar_type())};
}

struct RingAttention : torch::autograd::Function<RingAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const SharedPlan& plan) {
    const PartOutput whole = ring_forward(*plan, q, k, v);
    context->save_for_backward({q, k, v, whole.out, whole.lse});
    keep(context, plan);
    return whole.out;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const PartGradients d = ring_backward(*kept(context), saved[0], saved[1], saved[2],
                                          {saved[3], saved[4]}, gradients[0]);
    return {d.q, d.k, d.v, Tensor()};
  }
};

/// Rows beyond this rank's tokens take no part.
Tensor attend_ring(const SharedPlan& plan, const HeadRange& heads, const Tensor& q, const Tensor& k,
                   const Tensor& v) {
  const bool repeat = !heads.uniform();
  const std::int64_t rows = plan->rows[static_cast<std::size_t>(plan->slice.rank)];
  const Tensor own_q = q.narrow(0, 0, rows);
  const Tensor own_k = (repeat ? repeat_kv(k, heads, 1) : k).narrow(0, 0, rows);
  const Tensor own_v = (repeat ? repeat_kv(v, heads, 1) : v).narrow(0, 0, rows);
  Tensor out = recording(q, k, v) ? RingAttention::apply(own_q, own_k, own_v, plan)
                                  : ring_forward(*plan, own_q, own_k, own_v).out;
  if (rows < q.size(0)) out = at::constant_pad_nd(out, {0, 0, 0, 0, 0, q.size(0) - rows});
  return out.reshape({q.size(0), -1});
}

/// The part of attention in which a rank's queries of each sequence meet the keys of `other`.
AttentionPart ring_part(const ContextPlan& plan, std::span<const std::int64_t> lengths, int other,
                        bool packed, torch::Device device) {
  const int mine = plan.slice.rank, size = plan.slice.size;
  std::vector<PartRows> sequences;
  std::int64_t q_first = 0, k_first = 0;
  for (const std::int64_t length : lengths) {
    const ZigZag q = zig_zag(length, size, mine), k = zig_zag(length, size, other);
    const Interval early{q_first, q_first + q.early.size()};
    const Interval late{early.hi, early.hi + q.late.size()};
    const Interval k_early{k_first, k_first + k.early.size()};
    const Interval k_late{k_early.hi, k_early.hi + k.late.size()};
    q_first = late.hi;
    k_first = k_late.hi;
    PartRows rows{{early, late}, {k_early, k_late}};
    if (other < mine) rows.keys = {k_early};  // before both of this rank's parts
    if (other > mine) rows.queries = {late};  // after both of that rank's parts
    const auto none = [](const std::vector<Interval>& parts) {
      return std::all_of(parts.begin(), parts.end(), [](const Interval& p) { return p.empty(); });
    };
    if (!none(rows.queries) && !none(rows.keys)) sequences.push_back(std::move(rows));
  }
  return plan_part(sequences, other == mine, q_first, k_first, packed, device);
}

// ---- Ulysses

/// Block i of x [size, ..] to rank i, from every rank; its own adjoint.
Tensor exchanged(const Tensor& x, Communicator& group) {
  const Tensor send = x.contiguous();
  Tensor receive = torch::empty(send.sizes(), send.options().requires_grad(false));
  const auto count = static_cast<std::size_t>(send.numel() / group.size());
  group.all_to_all(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                   dtype_of(send.scalar_type()));
  return receive;
}

struct Exchange : torch::autograd::Function<Exchange> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const SharedPlan& plan) {
    keep(context, plan);
    return exchanged(x, *plan->parallel.group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {exchanged(gradients[0], *kept(context)->parallel.group), Tensor()};
  }
};

Tensor exchange(const Tensor& x, const SharedPlan& plan) {
  const bool differentiates = at::GradMode::is_enabled() && x.requires_grad();
  return differentiates ? Exchange::apply(x, plan) : exchanged(x, *plan->parallel.group);
}

Tensor attend_ulysses(const SharedPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t size = plan->slice.size, rows = q.size(0), dim = q.size(2);
  const std::int64_t queries = q.size(1) / size;
  const auto kv = static_cast<std::int64_t>(plan->kv_heads.size()) / size;
  // Dense results: cuDNN's backward pass made no numbers of q and k with a stride between tokens.
  const auto dealt = [&](const Tensor& x, std::int64_t heads) {
    return exchange(x.reshape({rows, size, heads, dim}).transpose(0, 1), plan)
        .view({size * rows, heads, dim});
  };
  const auto index = torch::tensor(plan->kv_heads, torch::kInt64).to(q.device());
  const auto kept_heads = [&](const Tensor& x) {
    return x.size(1) == index.size(0) ? x : x.index_select(1, index);
  };
  const Tensor out =
      attend(*plan->inner, dealt(q, queries), dealt(kept_heads(k), kv), dealt(kept_heads(v), kv));
  return exchange(out.view({size, rows, queries * dim}), plan)
      .transpose(0, 1)
      .reshape({rows, size * queries * dim});
}

/// KV heads for each rank's query heads: its own where they divide, else the one that serves all of
/// its query heads, else one per query head.
std::vector<std::int64_t> dealt_kv_heads(const HeadRange& heads, std::int64_t size) {
  const std::int64_t queries = heads.query.size(), kv = heads.kv.size();
  std::vector<std::int64_t> dealt;
  if (heads.uniform() && kv % size == 0) {
    dealt.resize(static_cast<std::size_t>(kv));
    std::iota(dealt.begin(), dealt.end(), std::int64_t{0});
    return dealt;
  }
  const std::int64_t share = queries / size;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const auto first = heads.kv_of_query.begin() + rank * share;
    if (std::all_of(first, first + share, [&](std::int64_t head) { return head == *first; })) {
      dealt.push_back(*first);
    }
  }
  if (static_cast<std::int64_t>(dealt.size()) == size) return dealt;
  return heads.kv_of_query;
}

HeadRange dealt_heads(std::int64_t queries, std::int64_t kv) {
  HeadRange heads{.query = {0, queries}, .kv = {0, kv}, .kv_of_query = {}};
  for (std::int64_t i = 0; i < queries; ++i) heads.kv_of_query.push_back(i / (queries / kv));
  return heads;
}

}  // namespace

std::shared_ptr<const ContextPlan> plan_context(const Weights& weights,
                                                std::span<const std::int64_t> lengths,
                                                const ContextParallel& parallel) {
  auto plan = std::make_shared<ContextPlan>();
  plan->parallel = parallel;
  plan->slice = {weights.layout.cp, weights.coord.cp, weights.layout.ulysses};
  const HeadRange heads = head_range(weights.model(), weights.layout.tp, weights.coord.tp);
  if (plan->slice.ulysses) {
    plan->kv_heads = dealt_kv_heads(heads, plan->slice.size);
    const auto kv = static_cast<std::int64_t>(plan->kv_heads.size()) / plan->slice.size;
    plan->inner = std::make_shared<AttentionPlan>(
        plan_attention(weights, lengths, dealt_heads(heads.query.size() / plan->slice.size, kv)));
    return plan;
  }
  const bool packed = fused::attention_usable(weights.device(), scalar_type(weights.dtype),
                                              weights.model().head_dim);
  for (int rank = 0; rank < plan->slice.size; ++rank) {
    std::int64_t rows = 0;
    for (const Interval& part : held_tokens(lengths, plan->slice.of(rank))) rows += part.size();
    plan->rows.push_back(rows);
  }
  for (int step = 0; step < plan->slice.size; ++step) {
    const int other = (plan->slice.rank + plan->slice.size - step) % plan->slice.size;
    plan->parts.push_back(ring_part(*plan, lengths, other, packed, weights.device()));
  }
  return plan;
}

Tensor attend_context(const SharedPlan& plan, const HeadRange& heads, const Tensor& q,
                      const Tensor& k, const Tensor& v) {
  return plan->slice.ulysses ? attend_ulysses(plan, q, k, v) : attend_ring(plan, heads, q, k, v);
}

}  // namespace tessera
