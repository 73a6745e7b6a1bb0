// Even passes of ranks that share experts: each does the rows of all by its own experts, and says
// what one rank with all experts says.
#include <gtest/gtest.h>

#include "executor/comm/groups.h"
#include "executor/model/experts.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

/// What memory held before shows in results that read it: torch fills it with NaN.
class FilledMemory {
 public:
  FilledMemory() { at::globalContext().setDeterministicAlgorithms(true, false); }
  ~FilledMemory() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

Tensor drawn_rows(const ModelSpec& spec, std::int64_t rows, int seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed));
  return torch::randn({rows, spec.hidden}, generator);
}

std::vector<const LayerRows*> routed_rows(const Weights& weights) {
  std::vector<const LayerRows*> routed;
  for (const LayerRows& rows : weights.rows.layers) {
    if (rows.routed()) routed.push_back(&rows);
  }
  return routed;
}

/// By layer: of the rows that a replica's seed draws.
std::vector<Tensor> on_one_rank(const Fixture& fixture, std::int64_t rows, int seed) {
  std::vector<Tensor> outs;
  on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const torch::NoGradGuard no_grad;
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    for (const LayerRows* layer : routed_rows(weights)) {
      outs.push_back(
          routed_mlp(weights, *layer, drawn_rows(fixture.spec, rows, seed), groups.tp.get()));
    }
  });
  return outs;
}

void expect_one_ranks_sums(const Fixture& fixture, const Degrees& degrees, std::int64_t rows) {
  std::vector<std::vector<Tensor>> want;
  for (int replica = 0; replica < degrees.dp; ++replica) {
    want.push_back(on_one_rank(fixture, rows, replica));
  }
  on_ranks(fixture.spec, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    const torch::NoGradGuard no_grad;
    const Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    ASSERT_TRUE(grouped_experts(weights));
    const auto replica = static_cast<std::size_t>(groups.dp_rank);
    std::size_t layer = 0;
    for (const LayerRows* each : routed_rows(weights)) {
      const Tensor got =
          routed_mlp(weights, *each, drawn_rows(fixture.spec, rows, static_cast<int>(replica)),
                     groups.tp.get(), ExpertOptions{.group = groups.ep.get(), .even = true});
      EXPECT_LE(relative_error(got, want[replica][layer++]), 1e-5)
          << "tp" << degrees.tp << " ep" << degrees.ep << " etp" << layout.etp << " rows " << rows;
    }
    EXPECT_GT(layer, 0u);
  });
}

TEST(EvenExperts, SayWhatOneRankSays) {
  const FilledMemory filled;
  const Degrees cuts[] = {{.dp = 2, .ep = 2},
                          {.dp = 4, .ep = 4},
                          {.dp = 4, .ep = 2},
                          {.tp = 2, .dp = 2, .ep = 2},
                          {.tp = 2, .dp = 1, .ep = 2, .etp = 1},
                          {.tp = 2, .dp = 2, .ep = 4, .etp = 1},
                          {.tp = 4, .dp = 1, .ep = 2, .etp = 1},
                          {.tp = 4, .dp = 1, .ep = 2, .etp = 2},
                          {.tp = 4, .dp = 2, .ep = 4, .etp = 2}};
  for (const char* name : {"tiny-mixtral", "tiny-qwen2-moe", "tiny-qwen3-moe"}) {
    Fixture fixture = read_fixture(name);
    fixture.spec.moe->expert_ffn = 48;  // so that halves are grouped, too
    fixture.folder.clear();             // weights are drawn
    for (const Degrees& degrees : cuts) {
      for (const std::int64_t rows : {1, 5, 16}) expect_one_ranks_sums(fixture, degrees, rows);
    }
  }
}

// Whether products are grouped decides whether a graph may hold them.
TEST(EvenExperts, ExpertsThatLieApartAreNotGrouped) {
  const Fixture fixture = read_fixture("tiny-qwen3-moe");
  on_ranks(fixture.spec, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(fixture.spec, layout, groups, fixture.folder);
    EXPECT_TRUE(grouped_experts(weights));
    const int down = routed_rows(weights).front()->expert_downs.front();
    weights.tensors[static_cast<std::size_t>(down)] =
        weights.tensors[static_cast<std::size_t>(down)].clone();
    EXPECT_FALSE(grouped_experts(weights));
  });
}

}  // namespace
}  // namespace tessera::testing
