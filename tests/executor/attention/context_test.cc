// Context parallelism: which tokens a rank holds, and attention over them against attention over
// whole sequences on one rank.
#include "executor/attention/context_attention.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <numeric>
#include <string>

#include "cost_models/spec/context_parallel.h"
#include "executor/attention/context_slices.h"
#include "executor/comm/groups.h"
#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

TEST(ContextSlices, HoldEveryTokenOnceAndInOrder) {
  EXPECT_TRUE(rc::check([] {
    const int size = *rc::gen::inRange(1, 7);
    const bool ulysses = *rc::gen::arbitrary<bool>();
    auto lengths = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 40)));
    const std::int64_t multiple = *rc::gen::inRange(1, 4);
    const ContextRows rows = context_rows(lengths, {size, 0, ulysses}, multiple);
    if (rows.padding > 0) lengths.push_back(rows.padding);
    const auto tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    std::vector<int> holders(static_cast<std::size_t>(tokens), 0);
    for (int rank = 0; rank < size; ++rank) {
      std::int64_t last = -1, held = 0;
      for (const Interval& part : held_tokens(lengths, {size, rank, ulysses})) {
        RC_ASSERT(part.lo > last || (part.lo == last && part.lo > 0));
        RC_ASSERT(!part.empty());
        for (std::int64_t t = part.lo; t < part.hi; ++t) ++holders[static_cast<std::size_t>(t)];
        last = part.hi;
        held += part.size();
      }
      const std::int64_t padded = context_rows(lengths, {size, rank, ulysses}, multiple).rows;
      RC_ASSERT(padded >= held);
      RC_ASSERT(padded % multiple == 0);
      RC_ASSERT(padded < std::max<std::int64_t>(held, 1) + multiple);
      if (ulysses) RC_ASSERT(padded == held);
    }
    for (const int count : holders) RC_ASSERT(count == 1);
  }));
}

/// Keys that the queries of a rank see under the causal mask, in one sequence.
std::int64_t seen_keys(std::int64_t length, int size, int rank) {
  const ZigZag parts = zig_zag(length, size, rank);
  std::int64_t sum = 0;
  for (const Interval& part : {parts.early, parts.late}) {
    for (std::int64_t t = part.lo; t < part.hi; ++t) sum += t + 1;
  }
  return sum;
}

TEST(ContextSlices, OfARingSeeEquallyManyKeys) {
  for (const int size : {2, 3, 8}) {
    const std::int64_t even = std::int64_t{10} * size;
    for (int rank = 1; rank < size; ++rank) {
      EXPECT_EQ(seen_keys(even, size, rank), seen_keys(even, size, 0));
      const auto odd = static_cast<double>(seen_keys(even + 3, size, rank));
      EXPECT_NEAR(odd, static_cast<double>((even + 3) * (even + 4)) / (2 * size), even);
    }
  }
}

TEST(ContextRefusal, NamesWhatDoesNotDivideAndWindows) {
  ModelSpec model{.query_heads = 6, .kv_heads = 3};
  EXPECT_EQ(context_refusal(model, {{.cp = 4}}), "");
  EXPECT_EQ(context_refusal(model, {{.tp = 2, .cp = 3}, 0, {}, false, true}), "");
  EXPECT_NE(context_refusal(model, {{.tp = 2, .cp = 2}, 0, {}, false, true}).find("6 query heads"),
            std::string::npos);
  model.sliding_window = 8;
  EXPECT_NE(context_refusal(model, {{.cp = 2}}), "");
  EXPECT_EQ(context_refusal(model, {{.cp = 2}, 0, {}, false, true}), "");
}

struct Attended {
  torch::Tensor out, q, k, v;  // and gradients
};

/// q, k, v and the output's gradient of all tokens: the same on every rank.
struct Inputs {
  torch::Tensor q, k, v, gradient;

  Inputs(const ModelSpec& model, std::int64_t tokens, at::ScalarType type) {
    torch::manual_seed(3);
    const auto draw = [&](std::int64_t heads) {
      return torch::randn({tokens, heads, model.head_dim}).to(type);
    };
    q = draw(model.query_heads);
    k = draw(model.kv_heads);
    v = draw(model.kv_heads);
    gradient = draw(model.query_heads).view({tokens, -1});
  }
};

template <typename Attend>
Attended differentiated(const Inputs& in, const torch::Tensor& rows, const Attend& attend) {
  const auto leaf = [&](const torch::Tensor& x) {
    return x.index_select(0, rows).clone().requires_grad_(true);
  };
  const torch::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
  const torch::Tensor out = attend(q, k, v);
  out.backward(in.gradient.index_select(0, rows));
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

Weights without_tensors(const ModelSpec& model, const ParallelLayout& layout,
                        const RankCoord& coord, DType dtype) {
  Weights weights;
  weights.table.model = model;
  weights.layout = layout;
  weights.coord = coord;
  weights.dtype = dtype;
  weights.storage = torch::empty({0}, torch::TensorOptions().dtype(scalar_type(dtype)));
  return weights;
}

void expect_same(const ModelSpec& model, ParallelLayout layout, DType dtype, double tolerance) {
  layout.stages = {{0, 1}};
  const std::vector<std::int64_t> lengths{13, 1, 2, 7, 24, 3, 40};
  std::vector<std::int64_t> padded = lengths;
  const ContextRows pad = context_rows(lengths, {layout.cp, 0, layout.ulysses}, 1);
  if (pad.padding > 0) padded.push_back(pad.padding);
  const auto tokens = std::accumulate(padded.begin(), padded.end(), std::int64_t{0});
  const Inputs in(model, tokens, scalar_type(dtype));
  const Weights whole = without_tensors(model, {{}, 0, {{0, 1}}}, {}, dtype);
  const Attended want =
      differentiated(in, torch::arange(tokens), [&](const auto& q, const auto& k, const auto& v) {
        return attend(plan_attention(whole, padded), q, k, v);
      });
  run_ranks(layout.cp, [&](Communicator& world) {
    torch::set_num_threads(1);
    const ContextSlice slice{layout.cp, world.rank(), layout.ulysses};
    std::vector<std::int64_t> held;
    for (const Interval& part : held_tokens(padded, slice)) {
      for (std::int64_t t = part.lo; t < part.hi; ++t) held.push_back(t);
    }
    const torch::Tensor rows = torch::tensor(held, torch::kInt64);
    const Weights weights = without_tensors(model, layout, {.cp = world.rank()}, dtype);
    const auto plan = plan_context(weights, padded, {.group = &world});
    const HeadRange heads = head_range(model, 1, 0);
    const Attended got = differentiated(in, rows, [&](const auto& q, const auto& k, const auto& v) {
      return attend_context(plan, heads, q, k, v);
    });
    const auto expect_rows = [&](const torch::Tensor& part, const torch::Tensor& all,
                                 const char* what) {
      const auto error =
          (part.to(torch::kFloat32) - all.index_select(0, rows).to(torch::kFloat32)).abs();
      if (error.numel() == 0) return;
      EXPECT_LE(error.max().item<double>(),
                tolerance * all.abs().max().to(torch::kFloat32).item<double>())
          << what;
    };
    expect_rows(got.out, want.out, "output");
    expect_rows(got.q, want.q, "gradient of q");
    expect_rows(got.k, want.k, "gradient of k");
    expect_rows(got.v, want.v, "gradient of v");
  });
}

TEST(ContextAttention, IsThatOfWholeSequences) {
  torch::set_num_threads(1);
  for (const auto& [heads, kv] : {std::pair{6, 3}, {8, 2}, {3, 1}}) {
    const ModelSpec model{.layers = 1, .query_heads = heads, .kv_heads = kv, .head_dim = 8};
    for (const int cp : {2, 3, 4}) {
      for (const bool ulysses : {false, true}) {
        const ParallelLayout layout{{.cp = cp}, 0, {}, false, ulysses};
        if (!context_refusal(model, layout).empty()) continue;
        SCOPED_TRACE(std::to_string(heads) + "/" + std::to_string(kv) + " heads, cp " +
                     std::to_string(cp) + (ulysses ? " ulysses" : " ring"));
        expect_same(model, layout, DType::fp32, 2e-6);
        expect_same(model, layout, DType::bf16, 2e-2);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
