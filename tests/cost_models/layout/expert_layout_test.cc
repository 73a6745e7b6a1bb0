// Routed experts and latent attention in the layout algebra: who holds what, and reshards between
// random layouts with ep and etp, against an oracle that knows only the numbering of ranks.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/reshard_plan.h"
#include "cost_models/layout/sharding.h"
#include "tests/cost_models/layout/reshard_oracle.h"

namespace tessera {
namespace {

ModelSpec sparse_model(std::int64_t experts) {
  ModelSpec model{.family = ModelFamily::qwen3_moe,
                  .layers = 2,
                  .hidden = 2,
                  .query_heads = 4,
                  .kv_heads = 2,
                  .head_dim = 2,
                  .ffn = 5,
                  .vocab = 7,
                  .max_positions = 16,
                  .qk_norm = true};
  model.moe = MoeSpec{.experts = experts, .experts_per_token = 2, .expert_ffn = 3};
  return model;
}

ParallelLayout layout_of(int tp, int pp, int dp, int ep, int etp) {
  return {{.tp = tp, .pp = pp, .dp = dp, .ep = ep, .etp = etp}, 0, even_stages(2, pp)};
}

// Any layout on at most 12 ranks whose experts divide.
ParallelLayout random_layout() {
  const int tp = *rc::gen::inRange(1, 5), pp = *rc::gen::inRange(1, 3);
  const int dp = *rc::gen::inRange(1, 4);
  const int stage = tp * dp;
  if (stage * pp > 12) return layout_of(2, 2, 2, *rc::gen::element(1, 2, 4), 1);
  std::vector<std::pair<int, int>> cuts;  // ep, etp
  for (int ep = 1; ep <= stage; ++ep) {
    for (int etp = 1; ep * etp <= stage; ++etp) {
      if (stage % (ep * etp) == 0) cuts.emplace_back(ep, etp);
    }
  }
  const auto [ep, etp] = cuts[static_cast<size_t>(*rc::gen::inRange<int>(0, int(cuts.size())))];
  return layout_of(tp, pp, dp, ep, etp);
}

RankMap mapped(const ParallelLayout& layout, RankOrder order, int first = 0) {
  std::vector<int> ranks(static_cast<size_t>(layout.ranks()));
  std::iota(ranks.begin(), ranks.end(), first);
  Problems problems;
  RankMap map = make_rank_map(order, layout, ranks, nullptr, "", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

// The rank's number in its stage, tp fastest, then dp: without expert_coord.
int number_in_stage(const ParallelLayout& layout, const RankCoord& at) {
  return at.tp + layout.tp * (at.dp_shard + layout.dp_shard * at.dp_replicate);
}

bool in_part(std::int64_t unit, std::int64_t units, int parts, int part) {
  return unit >= part * units / parts && unit < (part + 1) * units / parts;
}

TEST(ExpertLayout, EveryElementLiesWhereTheNumberingSays) {
  EXPECT_TRUE(rc::check("holders", [] {
    const std::int64_t experts = *rc::gen::element<std::int64_t>(4, 6, 8);
    const ParallelLayout layout = random_layout();
    const ParameterTable table = parameter_table(sparse_model(experts));
    const RankMap map = mapped(layout, RankOrder::contiguous);
    for (const Parameter& row : table.rows) {
      if (row.experts == 0 || row.expert_dim >= 0) continue;
      for (const RankCoord& at : map.coords) {
        const int number = number_in_stage(layout, at);
        const int etp = number % layout.etp, ep = number / layout.etp % layout.ep;
        const bool stage = holds(row, layout, at);
        const bool mine = stage && in_part(row.expert, experts, layout.ep, ep);
        const auto box = compute_box(row, layout, at);
        if (!mine) {
          RC_ASSERT(!box.has_value());
          continue;
        }
        const auto dim = static_cast<size_t>(row.split_dim);
        for (std::int64_t i = 0; i < row.shape[dim]; ++i) {
          const bool want = in_part(i, row.shape[dim], layout.etp, etp);
          const bool have = box && i >= box->dims[dim].lo && i < box->dims[dim].hi;
          RC_ASSERT(want == have);
        }
      }
    }
  }));
}

TEST(ExpertLayout, ReshardsBetweenRandomExpertLayoutsKeepEveryInvariant) {
  rc::detail::TestParams params;
  params.maxSuccess = 400;
  params.maxSize = 200;
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = "expert layouts";
  const auto property = [] {
    const ParameterTable table = parameter_table(sparse_model(*rc::gen::element(4, 6)));
    const ParallelLayout a = random_layout(), b = random_layout();
    const auto order = [] { return *rc::gen::element(RankOrder::contiguous, RankOrder::megatron); };
    const RankMap from = mapped(a, order());
    const RankMap to = mapped(b, order(), *rc::gen::element(0, 0, 3, std::min(a.ranks(), 8)));
    const auto tensors = model_tensors(table, from, to, DType::bf16);
    const std::string broken = broken_invariant(tensors, plan_reshard(tensors));
    RC_ASSERT(broken == "");
  };
  const auto result = rc::detail::checkTestable(property, metadata, params);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << [&] {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    return text.str();
  }();
}

// Megatron TP2 x EP4 to an engine's TP8 x EP8 on the same ranks moves no expert that stays.
TEST(ExpertLayout, ARankThatKeepsItsExpertsReceivesNoneOfThem) {
  ModelSpec model = sparse_model(8);
  const ParameterTable table = parameter_table(model);
  const RankMap from = mapped(layout_of(2, 1, 4, 8, 1), RankOrder::contiguous);
  const RankMap to = mapped(layout_of(1, 1, 8, 8, 1), RankOrder::contiguous);
  auto tensors = model_tensors(table, from, to, DType::bf16);
  std::erase_if(tensors, [&](const ShardedTensor& tensor) {
    return tensor.name.find("experts") == std::string::npos;
  });
  ASSERT_FALSE(tensors.empty());
  EXPECT_EQ(plan_reshard(tensors).total_received.value, 0);
}

ModelSpec latent_model(int heads) {
  ModelSpec model{.family = ModelFamily::deepseek_v3,
                  .layers = 1,
                  .hidden = 8,
                  .query_heads = heads,
                  .kv_heads = heads,
                  .head_dim = 3,
                  .ffn = 6,
                  .vocab = 16,
                  .max_positions = 16};
  model.mla = MlaSpec{.q_lora_rank = 4,
                      .kv_lora_rank = 2,
                      .qk_nope_head_dim = 2,
                      .qk_rope_head_dim = 1,
                      .v_head_dim = 2};
  model.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 3, .shared_ffn = 3};
  return model;
}

// Heads of a key and of a value of a rank are those of its queries; what is compressed is whole.
TEST(LatentAttention, IsCutByHeadsAndKeepsItsCompressedProjectionsWhole) {
  for (const int heads : {8, 6}) {
    const ParameterTable table = parameter_table(latent_model(heads));
    const std::string prefix = "model.layers.0.self_attn.";
    const auto row = [&](const std::string& name) {
      const auto found = table.find(prefix + name);
      EXPECT_TRUE(found) << name;
      return table.rows[static_cast<size_t>(*found)];
    };
    const int tp = 4;
    const ParallelLayout layout{{.tp = tp}, 0, even_stages(1, 1)};
    struct Cut {
      const char* name;
      size_t dim;
      std::int64_t per_head;
    };
    for (const Cut& cut : {Cut{"q_b_proj.weight", 0, 3}, Cut{"kv_b_proj.weight", 0, 4},
                           Cut{"o_proj.weight", 1, 2}}) {
      std::int64_t at = 0;
      for (int t = 0; t < tp; ++t) {
        const auto box = compute_box(row(cut.name), layout, {.tp = t});
        ASSERT_TRUE(box) << cut.name;
        const std::int64_t first = t * heads / tp, last = (t + 1) * heads / tp;
        EXPECT_EQ(box->dims[cut.dim], (Interval{first * cut.per_head, last * cut.per_head}));
        EXPECT_EQ(box->dims[cut.dim].lo, at) << cut.name;
        at = box->dims[cut.dim].hi;
      }
      EXPECT_EQ(at, heads * cut.per_head);
    }
    for (const char* name : {"q_a_proj.weight", "kv_a_proj_with_mqa.weight", "q_a_layernorm.weight",
                             "kv_a_layernorm.weight"}) {
      for (int t = 0; t < tp; ++t) {
        EXPECT_EQ(volume(*compute_box(row(name), layout, {.tp = t})),
                  volume(whole(row(name).shape)))
            << name;
      }
    }
  }
}

TEST(ParameterTable, Gpt2sValueHeadHasTheNameThatTransformersSaves) {
  ModelSpec model{.family = ModelFamily::gpt2,
                  .layers = 1,
                  .hidden = 8,
                  .query_heads = 2,
                  .kv_heads = 2,
                  .head_dim = 4,
                  .ffn = 32,
                  .vocab = 16,
                  .max_positions = 8};
  model.head = ModelHead::value;
  const ParameterTable table = parameter_table(model);
  EXPECT_TRUE(table.find("classifier.weight"));  // GPT2ForTokenClassification
  EXPECT_TRUE(table.find("classifier.bias"));
  EXPECT_FALSE(table.find("score.weight"));
}

}  // namespace
}  // namespace tessera
