// What VeOmni's and torchtitan's tables hold of layouts, held to the assertions of both libraries'
// own meshes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/space/layout_space.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

ModelSpec preset(const char* name) {
  Problems problems;
  return *read_model_spec(name, problems);
}

ParallelLayout whole_model(const ModelSpec& model, ParallelLayout layout) {
  layout.stages = even_stages(model.layers, layout.pp, layout.vpp);
  return layout;
}

std::string told(const char* engine, const ModelSpec& model, const ParallelLayout& layout) {
  std::string all;
  for (const Problem& problem :
       outside_capabilities(engine_named(engine), model, Role::actor, whole_model(model, layout))) {
    all += problem.place + ": " + problem.hint + "\n";
  }
  return all;
}

/// "ep_size must be a factor of dp_shard_sp_size" (VeOmni's init_parallel_state), and its experts'
/// mesh is (ep_fsdp, ep) of them.
bool veomni_builds(const ParallelLayout& layout) {
  const int shards = layout.cp * (layout.zero == 3   ? layout.dp_shard
                                  : layout.zero == 2 ? layout.dp
                                                     : 1);
  return layout.tp == 1 && layout.pp == 1 && (layout.cp == 1 || layout.ulysses) &&
         shards % layout.ep == 0;
}

/// The experts' mesh unflattens dp_shard * cp * tp as (efsdp, ep) (torchtitan's
/// ParallelDims.build_mesh); verl's engine does not gather what context-parallel ranks compute.
bool torchtitan_builds(const ParallelLayout& layout) {
  const int shards = layout.tp * layout.cp *
                     (layout.zero == 3   ? layout.dp_shard
                      : layout.zero == 2 ? layout.dp
                                         : 1);
  return layout.pp == 1 && layout.cp == 1 && shards % layout.ep == 0 &&
         layout.etp == (layout.ep == 1 ? layout.tp : 1);
}

TEST(VerlMeshes, AreThoseThatTheLibrariesBuild) {
  const ModelSpec model = preset("qwen3-30b-a3b");  // 128 experts, 32 heads, 4 of keys
  int built = 0;
  for (const int tp : {1, 2, 4}) {
    for (const int cp : {1, 2}) {
      for (const int shard : {1, 2, 4}) {
        for (const int ep : {1, 2, 4, 8, 16}) {
          for (const int zero : {0, 2, 3}) {
            for (const bool ulysses : {false, true}) {
              if ((zero == 3) != (shard > 1) || (ulysses && cp == 1)) continue;
              if (tp * cp * 4 % ep != 0) continue;  // no such layout
              ParallelLayout layout{{.tp = tp, .cp = cp, .dp = 4, .dp_shard = shard, .ep = ep},
                                    zero};
              layout.etp = ep == 1 ? tp : 1;
              layout.ulysses = ulysses;
              layout.sequence_parallel = tp > 1;
              EXPECT_EQ(told("verl-veomni", model, layout).empty(), veomni_builds(layout))
                  << describe(layout) << told("verl-veomni", model, layout);
              EXPECT_EQ(told("verl-torchtitan", model, layout).empty(), torchtitan_builds(layout))
                  << describe(layout) << told("verl-torchtitan", model, layout);
              built += torchtitan_builds(layout) ? 1 : 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(built, 15);
}

TEST(VerlMeshes, StagesAndExpertsThatDoNotExistAreRefusedByNumbers) {
  const ModelSpec dense = preset("qwen3-8b"), sparse = preset("qwen3-30b-a3b");
  EXPECT_THAT(told("verl-torchtitan", dense, {{.pp = 2, .dp = 4, .dp_shard = 4}, 3}),
              testing::HasSubstr("pp: "));
  EXPECT_THAT(told("verl-veomni", sparse, {{.dp = 6, .dp_shard = 6, .ep = 3}, 3}),
              testing::HasSubstr("ep 3 for 128 experts over 6 ranks that share weights"));
  EXPECT_THAT(told("verl-veomni", dense, {{.dp = 4, .dp_shard = 4, .ep = 2}, 3}),
              testing::HasSubstr("ep 2 of a model without experts"));
}

TEST(VerlMeshes, AnswerThoseAloneWhoNameThem) {
  const std::vector<Role> roles{Role::actor, Role::rollout, Role::reference};
  const auto names = [&](const char* asked) {
    std::vector<std::string> all;
    for (const Engine* engine : answering(engine_named(asked), roles)) all.push_back(engine->name);
    return all;
  };
  EXPECT_THAT(names("verl-veomni"), testing::ElementsAre("verl-veomni"));
  EXPECT_THAT(names("any"), testing::AllOf(testing::Contains("verl-megatron"),
                                           testing::Not(testing::Contains("verl-veomni")),
                                           testing::Not(testing::Contains("verl-torchtitan"))));
}

// _HF_MODEL_TYPE_TO_TORCHTITAN_NAME and MODELING_REGISTRY; torchtitan's own sizes.
TEST(VerlMeshes, ModelsAreThoseThatTheLibrariesHave) {
  const auto refused = [](const char* engine, const char* model) {
    Problems problems;
    refuse_model(engine_named(engine), {.spec = preset(model)}, "a", "b", problems);
    return !problems.empty();
  };
  for (const char* model : {"qwen3-8b", "qwen3-235b-a22b", "llama3.1-70b", "deepseek-v3",
                            "gpt-oss-20b", "moonlight-16b-a3b"}) {
    EXPECT_EQ(refused("verl-torchtitan", model), std::string_view(model) == "moonlight-16b-a3b")
        << model;  // 163840 tokens of a vocabulary
    EXPECT_FALSE(refused("verl-veomni", model)) << model;
  }
  for (const char* model : {"qwen2.5-7b", "qwen3.5-35b-a3b", "qwen3-vl-8b", "seed-oss-36b"}) {
    EXPECT_TRUE(refused("verl-torchtitan", model)) << model;
    EXPECT_FALSE(refused("verl-veomni", model)) << model;
  }
  for (const char* model : {"gemma2-9b", "nemotron-h-8b", "glm4.5-air"}) {
    EXPECT_TRUE(refused("verl-veomni", model)) << model;
  }
}

}  // namespace
}  // namespace tessera
