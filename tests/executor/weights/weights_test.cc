#include "executor/weights/weights.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <numeric>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/data/init_model.h"
#include "executor/weights/kept_weights.h"
#include "tests/executor/model/fixture.h"
#include "tests/executor/temporary_folder.h"

namespace tessera::testing {
namespace {

using torch::Tensor;
using Tensors = std::map<std::string, Tensor>;

/// The tensors that the role's first rank gathers.
Tensors gathered(const ModelSpec& spec, Degrees degrees, const std::filesystem::path& folder) {
  Tensors whole;
  on_ranks(spec, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(spec, layout, groups, folder);
    gather_weights(weights, groups, [&](const Parameter& parameter, const Tensor& tensor) {
      EXPECT_EQ(groups.index, 0);
      EXPECT_TRUE(tensor.is_contiguous());
      EXPECT_TRUE(whole.emplace(parameter.name, tensor.clone()).second);
    });
  });
  return whole;
}

TEST(Weights, LoadedPartsGatherToTheFilesBytes) {
  for (const char* name : {"tiny-llama-biased", "tiny-qwen2-tied", "tiny-qwen3"}) {
    const Fixture fixture = read_fixture(name);
    Problems problems;
    const auto file = open_safetensors(fixture.folder / "model.safetensors", problems);
    ASSERT_TRUE(file);
    for (const Degrees degrees :
         {Degrees{1, 1}, {2, 1}, {4, 1}, {3, 1}, {1, 2}, {2, 2}, {2, 1, 2}}) {
      const Tensors whole = gathered(fixture.spec, degrees, fixture.folder);
      ASSERT_EQ(whole.size(), file->tensors.size());
      for (const TensorView& view : file->tensors) {
        const Tensor& tensor = whole.at(view.name);
        ASSERT_EQ(tensor.sizes().vec(), view.shape) << view.name;
        EXPECT_EQ(std::memcmp(tensor.const_data_ptr(), view.data.data(), view.data.size()), 0)
            << view.name;
      }
    }
  }
}

TEST(Weights, DrawnValuesDoNotDependOnTheLayout) {
  const ModelSpec spec = small_model(10, 2);
  const Tensors want = gathered(spec, {}, {});
  for (const Degrees degrees : {Degrees{3, 1}, {2, 2}}) {
    for (const auto& [name, tensor] : gathered(spec, degrees, {})) {
      EXPECT_TRUE(torch::equal(tensor, want.at(name))) << name;
    }
  }
  EXPECT_FALSE(torch::equal(want.at("model.layers.0.self_attn.k_proj.weight"),
                            want.at("model.layers.1.self_attn.k_proj.weight")));
  EXPECT_GT(want.at("lm_head.weight").abs().max().item<double>(), 0.1);
}

/// Every rank draws for itself what it would have read from the folder of init-model.
TEST(Weights, RanksDrawTheBitsThatInitModelWrites) {
  for (const char* name : {"tiny-llama-biased", "tiny-qwen2-tied", "tiny-qwen3"}) {
    const Fixture fixture = read_fixture(name);
    const TemporaryFolder temporary;
    const std::filesystem::path folder = temporary.path / "model";
    for (const DType type : {DType::fp32, DType::bf16}) {
      Problems problems;
      std::filesystem::remove_all(folder);
      ASSERT_TRUE(
          init_model(fixture.folder / "config.json", folder, {.seed = 5, .dtype = type}, problems));
      const auto deviation = initializer_range_of(folder, problems);
      ASSERT_TRUE(deviation);
      for (const Degrees degrees : {Degrees{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {2, 1, 2}}) {
        on_ranks(fixture.spec, degrees,
                 [&](const ParallelLayout& layout, const ParallelGroups& groups) {
                   const Weights read = loaded(fixture.spec, layout, groups, folder, type);
                   Weights drawn = make_weights(parameter_table(fixture.spec), layout, groups.coord,
                                                type, torch::kCPU);
                   draw_kept_weights(drawn, fixture.spec, *deviation, 5);
                   EXPECT_TRUE(torch::equal(drawn.storage, read.storage)) << name;
                   draw_kept_weights(drawn, fixture.spec, *deviation, 6);
                   EXPECT_FALSE(torch::equal(drawn.storage, read.storage)) << name;
                 });
      }
    }
  }
}

/// With FSDP a rank reads or draws its shards, and leaves the rest alone.
TEST(Weights, RanksStartFromTheirShardsAlone) {
  const Fixture fixture = read_fixture("tiny-qwen2-tied");
  const TemporaryFolder temporary;
  Problems problems;
  ASSERT_TRUE(init_model(fixture.folder / "config.json", temporary.path / "model",
                         {.seed = 5, .dtype = DType::fp32}, problems));
  const auto deviation = initializer_range_of(temporary.path / "model", problems);
  const ParameterTable table = parameter_table(fixture.spec);
  ParallelLayout layout = layout_of(fixture.spec, {2, 1, 3});
  layout.dp_shard = 3;
  layout.zero = 3;
  for (int tp = 0; tp < 2; ++tp) {
    for (int shard = 0; shard < 3; ++shard) {
      const RankCoord coord{.tp = tp, .dp_shard = shard};
      const auto empty = [&] {
        return make_weights(table, layout, coord, DType::fp32, torch::kCPU);
      };
      Weights whole = empty(), read = empty(), drawn = empty();
      load_weights(whole, temporary.path / "model", 5, problems);
      load_kept_weights(read, temporary.path / "model", 5, problems);
      draw_kept_weights(drawn, fixture.spec, *deviation, 5);
      Weights expected = empty();
      std::int64_t kept = 0;
      for (const ArenaSlot& slot : kept_slots(whole)) {
        part_in(expected, slot).copy_(part_in(whole, slot));
        kept += part_in(expected, slot).numel();
      }
      EXPECT_LT(kept, whole.storage.numel() / 2);
      EXPECT_TRUE(torch::equal(read.storage, expected.storage));
      EXPECT_TRUE(torch::equal(drawn.storage, expected.storage));
    }
  }
  EXPECT_TRUE(problems.empty());
}

TEST(Weights, RowParallelTensorsAreStoredInByOut) {
  const Fixture fixture = read_fixture("tiny-llama");
  on_ranks(fixture.spec, {2, 1}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    EXPECT_THAT(weights.at("model.layers.0.mlp.down_proj.weight").sizes(),
                ::testing::ElementsAre(22, 32));
    EXPECT_THAT(weights.at("model.layers.0.mlp.up_proj.weight").sizes(),
                ::testing::ElementsAre(22, 32));
    EXPECT_THAT(weights.at("model.layers.0.self_attn.o_proj.weight").sizes(),
                ::testing::ElementsAre(16, 32));
  });
}

TEST(Weights, EveryElementIsCountedOnce) {
  for (const auto& [heads, kv] : {std::pair{10, 2}, {6, 3}, {7, 1}, {4, 4}}) {
    ModelSpec spec = small_model(heads, kv);
    spec.tied_embeddings = true;
    const ParameterTable table = parameter_table(spec);
    for (const Degrees degrees : {Degrees{1, 1}, {2, 1}, {3, 2}, {4, 1}}) {
      const ParallelLayout layout = layout_of(spec, degrees);
      for (const Parameter& parameter : table.rows) {
        std::vector<int> seen(parameter.shape[parameter.split_dim > 0 ? 1 : 0], 0);
        for (int pp = 0; pp < degrees.pp; ++pp) {
          for (int tp = 0; tp < degrees.tp; ++tp) {
            const RankCoord coord{.tp = tp, .pp = pp};
            const Interval counted = counted_range(parameter, layout, coord);
            const auto box = compute_box(parameter, layout, coord);
            const std::int64_t start = box ? box->dims[parameter.split_dim > 0 ? 1 : 0].lo : 0;
            for (std::int64_t i = counted.lo; i < counted.hi; ++i) ++seen[start + i];
          }
        }
        EXPECT_THAT(seen, ::testing::Each(1)) << parameter.name;
      }
    }
  }
}

TEST(Weights, MissingAndMisshapenTensorsAreAllNamed) {
  const Fixture fixture = read_fixture("tiny-llama");
  ModelSpec other = fixture.spec;
  other.ffn += 1;
  other.qk_norm = true;
  on_ranks(other, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights =
        make_weights(parameter_table(other), layout, groups.coord, DType::fp32, torch::kCPU);
    Problems problems;
    load_weights(weights, fixture.folder, 1, problems);
    // Per layer: gate, up, down of another shape; q_norm and k_norm absent.
    EXPECT_EQ(problems.size(), static_cast<std::size_t>(5 * other.layers));
  });
}

TEST(Weights, ACriticStartsFromAnActorWithADrawnValueHead) {
  const Fixture fixture = read_fixture("tiny-qwen2");
  ModelSpec critic = fixture.spec;
  critic.head = ModelHead::value;
  on_ranks(critic, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const Weights weights = loaded(critic, layout, groups, fixture.folder);
    EXPECT_GT(weights.at("score.weight").abs().max().item<double>(), 0.0);
    EXPECT_LT(weights.at("score.weight").abs().max().item<double>(), 0.2);
  });
}

}  // namespace
}  // namespace tessera::testing
