// Clusters with two GPU types. Oracle: every pool at every place in the cluster, with its ranks'
// own types and prices, and every combination of candidates.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "cost_models/spec/node_groups.h"
#include "planner/explain/planner.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"
#include "planner/space/layout_space.h"
#include "planner/space/place_pools.h"
#include "planner/space/placements.h"
#include "tests/planner/sample_requests.h"
#include "tests/planner/search/played.h"
#include "tests/planner/search/random_costs.h"

namespace tessera {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

ClusterSpec mixed_cluster(int per_node, const std::vector<int>& nodes,
                          const std::vector<double>& prices) {
  ClusterSpec cluster = cluster_of(per_node, 0, 80);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NodeGroup group{.device = cluster.device, .nodes = nodes[i]};
    group.device.name = "type" + std::to_string(i);
    group.device.peak_bf16.value *= static_cast<double>(i + 1);
    group.intra_per_gpu = cluster.intra_per_gpu;
    group.nics_per_node = cluster.nics_per_node;
    group.nic = cluster.nic;
    group.price_per_gpu_hour = prices[i];
    cluster.groups.push_back(group);
  }
  set_to_weakest(cluster, {0, static_cast<int>(nodes.size()) - 1});
  return cluster;
}

// Every place of every pool; what lies alike is judged once.
class EveryPlace {
 public:
  explicit EveryPlace(const SearchProblem& problem) : problem_(problem) {
    const auto per_node = static_cast<int>(problem.cluster.gpus_per_node);
    const auto all = static_cast<int>(problem.cluster.gpus());
    for (const int size : block_sizes(problem.cluster)) {
      for (int first = 0; first + size <= all; ++first) {
        const bool whole = size % per_node == 0;
        const bool inside = first / per_node == (first + size - 1) / per_node;
        if (whole ? first % per_node == 0 : inside) pools_.push_back({first, size});
      }
    }
  }

  OracleValues run() {
    for (const Placement& placement : problem_.placements) {
      for (const int lag : problem_.policy_lags) {
        if (lag > 0 && !rollout_apart(placement)) continue;
        placement_ = &placement;
        lag_ = lag;
        best_ = kNone;
        judged_.clear();
        place();
        if (best_ < kNone) result_[{describe(placement), lag}] = best_;
      }
    }
    return result_;
  }

 private:
  struct Pool {
    int first = 0, size = 0;
    std::vector<int> ranks() const {
      std::vector<int> all(static_cast<std::size_t>(size));
      std::iota(all.begin(), all.end(), first);
      return all;
    }
  };

  void place() {
    if (chosen_.size() == placement_->size()) return combine();
    for (const Pool& pool : pools_) {
      const bool free = std::none_of(chosen_.begin(), chosen_.end(), [&](const Pool& other) {
        return pool.first < other.first + other.size && other.first < pool.first + pool.size;
      });
      if (!free) continue;
      chosen_.push_back(pool);
      place();
      chosen_.pop_back();
    }
  }

  void combine() {
    sizes_.clear();
    views_.clear();
    billed_ = 0;
    int gpus = 0;
    const ClusterSpec& cluster = problem_.cluster;
    for (const Pool& pool : chosen_) {
      const std::vector<int> ranks = pool.ranks();
      sizes_.push_back(pool.size);
      views_.push_back(view_of(cluster, ranks));
      gpus += pool.size;
      for (const int rank : ranks) {
        billed_ +=
            cluster.groups[static_cast<std::size_t>(group_of(cluster, rank))].price_per_gpu_hour /
            cluster.price_per_gpu_hour;
      }
    }
    if (problem_.gpus > 0 && gpus > problem_.gpus) return;
    if (!judged_.insert({sizes_, views_, billed_}).second) return;
    picked_.clear();
    choose(0);
  }

  std::size_t block_of(Role role) const {
    for (std::size_t b = 0; b < placement_->size(); ++b) {
      const auto& roles = (*placement_)[b];
      if (std::find(roles.begin(), roles.end(), role) != roles.end()) return b;
    }
    return 0;
  }

  void choose(std::size_t index) {
    if (index == problem_.roles.size()) return judge();
    const Role role = problem_.roles[index];
    const std::size_t block = block_of(role);
    for (Candidate candidate : candidates_of(problem_.spaces(role, sizes_[block]))) {
      candidate.view = views_[block];
      picked_.push_back(candidate);
      choose(index + 1);
      picked_.pop_back();
    }
  }

  void judge() {
    PhaseSeconds seconds = problem_.views[static_cast<std::size_t>(views_[0])].fixed_seconds;
    const Candidate *actor = nullptr, *rollout = nullptr;
    for (std::size_t block = 0; block < sizes_.size(); ++block) {
      Bytes resting, most, in_reshard;
      for (const Candidate& one : picked_) {
        if (block_of(one.role) == block) resting += problem_.evaluator.role(one).resident;
      }
      in_reshard = resting;
      for (const Candidate& one : picked_) {
        if (block_of(one.role) != block) continue;
        const RoleCost cost = problem_.evaluator.role(one);
        most = std::max(most, resting - cost.resident + cost.peak);
        in_reshard += cost.in_reshard - cost.resident;
      }
      const auto view = static_cast<std::size_t>(views_[block]);
      if (std::max(most, in_reshard) > problem_.views[view].memory_limit) return;
    }
    for (const Candidate& one : picked_) {
      const RoleCost cost = problem_.evaluator.role(one);
      seconds += cost.seconds;
      if (one.role == Role::actor) actor = &one;
      if (one.role == Role::rollout) rollout = &one;
    }
    seconds[Phase::reshard] +=
        problem_.evaluator.reshard_seconds(*actor, *rollout, !rollout_apart(*placement_));
    const double step = played(problem_, *placement_, lag_, seconds).value;
    const int gpus = std::accumulate(sizes_.begin(), sizes_.end(), 0);
    switch (problem_.objective) {
      case Objective::step_time:
        best_ = std::min(best_, step);
        break;
      case Objective::tokens_per_gpu:
        best_ = std::min(best_, step * gpus);
        break;
      case Objective::cost:
        best_ = std::min(best_, step * billed_);
        break;
      case Objective::fewest_gpus:
        best_ = std::min(best_, gpus * 1e6 + step);
        break;
    }
  }

  const SearchProblem& problem_;
  std::vector<Pool> pools_, chosen_;
  const Placement* placement_ = nullptr;
  int lag_ = 0;
  std::vector<int> sizes_, views_;
  double billed_ = 0;
  std::set<std::tuple<std::vector<int>, std::vector<int>, double>> judged_;
  std::vector<Candidate> picked_;
  OracleValues result_;
  double best_ = kNone;
};

// Seconds and bytes that follow no model, of each view its own.
SearchProblem random_problem(std::mt19937_64& engine) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  static constexpr std::array<std::array<int, 4>, 7> kShapes = {{{1, 1, 1, 0},
                                                                 {2, 1, 1, 0},
                                                                 {1, 2, 2, 0},
                                                                 {2, 2, 1, 0},
                                                                 {2, 1, 2, 0},
                                                                 {4, 1, 1, 0},
                                                                 {1, 1, 2, 1}}};
  const auto shape = kShapes[static_cast<std::size_t>(pick(0, 6))];
  std::vector<int> nodes = {shape[1], shape[2]};
  if (shape[3] > 0) nodes.push_back(shape[3]);
  std::vector<double> prices;
  for (std::size_t i = 0; i < nodes.size(); ++i) prices.push_back(0.5 * pick(1, 8));
  SearchProblem problem;
  problem.cluster = mixed_cluster(shape[0], nodes, prices);
  const Workload workload =
      workload_of("grpo", pick(0, 1) == 1 ? KlPlace::loss : KlPlace::none, pick(0, 2) == 0);
  problem.roles = roles_of(workload);
  problem.schedule = default_schedule(workload);
  problem.placements = all_placements(problem.roles, true);
  problem.policy_lags = {0, 1};
  problem.objective = static_cast<Objective>(pick(0, 3));
  const RandomCosts costs{engine(), workload};
  for (std::size_t v = 0; v < pool_views(problem.cluster).size(); ++v) {
    SearchProblem::View view{.memory_limit = Bytes{pick(60, 300)}};
    view.fixed_seconds[Phase::adv] = Seconds{0.01 * pick(1, 20)};
    problem.views.push_back(view);
  }
  problem.memory_limit = problem.views[0].memory_limit;
  problem.fixed_seconds = problem.views[0].fixed_seconds;
  problem.spaces = [](Role role, int gpus) {
    return std::vector<LayoutSpace>{{{{.tp = 1}, role, gpus}, {{}}, {{}}},
                                    {{{.tp = 2}, role, gpus}, {{}}, {{}}}};
  };
  costs.price(problem);
  return problem;
}

// Ranges of a solution: apart, of the views that it says, and billed as their ranks are.
void expect_sound_ranges(const SearchProblem& problem, const Solution& solution,
                         const std::string& what) {
  std::set<int> used;
  double billed = 0;
  for (std::size_t block = 0; block < solution.sizes.size(); ++block) {
    std::vector<int> ranks(static_cast<std::size_t>(solution.sizes[block]));
    std::iota(ranks.begin(), ranks.end(), solution.first_rank[block]);
    EXPECT_GE(ranks.front(), 0) << what;
    EXPECT_LT(ranks.back(), problem.cluster.gpus()) << what;
    EXPECT_EQ(view_of(problem.cluster, ranks), solution.views[block]) << what;
    for (const int rank : ranks) {
      EXPECT_TRUE(used.insert(rank).second) << what;
      billed += problem.cluster.groups[static_cast<std::size_t>(group_of(problem.cluster, rank))]
                    .price_per_gpu_hour /
                problem.cluster.price_per_gpu_hour;
    }
  }
  EXPECT_NEAR(solution.billed_gpus, billed, 1e-9 * billed) << what;
}

TEST(MixedSearch, EqualsEveryPlaceOfEveryPoolForEveryObjective) {
  std::mt19937_64 engine(20261121);
  std::map<std::string, int> seen;
  for (int trial = 0; trial < 150; ++trial) {
    const SearchProblem problem = random_problem(engine);
    const std::string what = "trial " + std::to_string(trial);
    const auto oracle = EveryPlace(problem).run();
    const SearchResult result = search_exactly(problem);
    expect_equals_oracle(problem, result, oracle, what);
    for (const Solution& solution : result.best) {
      expect_sound_ranges(problem, solution, what);
    }
    if (result.best.empty()) continue;
    ++seen["feasible"];
    for (const Solution& solution : result.best) {
      for (const int view : solution.views) {
        const bool one = pool_views(problem.cluster)[static_cast<std::size_t>(view)].single();
        ++seen[one ? "one type" : "spans"];
      }
    }
  }
  EXPECT_GT(seen["feasible"], 100);
  EXPECT_GT(seen["one type"], 50);
  EXPECT_GT(seen["spans"], 20);
}

TEST(MixedSearch, ASmallerBudgetIsKeptOverAllTypes) {
  std::mt19937_64 engine(7);
  for (int trial = 0; trial < 40; ++trial) {
    SearchProblem problem = random_problem(engine);
    problem.gpus = static_cast<int>(problem.cluster.gpus()) / 2 + 1;
    const auto oracle = EveryPlace(problem).run();
    expect_equals_oracle(problem, search_exactly(problem), oracle,
                         "trial " + std::to_string(trial));
  }
}

// Types of equal figures are no types: the same plan as of a cluster of one.
TEST(MixedSearch, EqualTypesAreAsGoodAsOne) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0, 1024};
  ClusterSpec one = cluster_of(8, 4, 80);
  one.price_per_gpu_hour = 2;
  ClusterSpec two = mixed_cluster(8, {2, 2}, {2, 2});
  for (NodeGroup& group : two.groups) {
    group.device = one.device;
    group.nic = one.nic;
  }
  set_to_weakest(two, {0, 1});
  for (const char* objective : {"step_s", "cost"}) {
    Problems problems;
    PlanRequest request = request_of(llama_8b(), workload, one);
    request.objective = *objective_from(objective);
    const auto expected = make_plan(request, problems);
    request.cluster = two;
    request.fixed.placement = describe_placement(std::get<Plan>(*expected));
    const auto found = make_plan(request, problems);
    const Plan& a = std::get<Plan>(*expected);
    const Plan& b = std::get<Plan>(*found);
    EXPECT_NEAR(a.prediction.step_s, b.prediction.step_s, 1e-9 * a.prediction.step_s);
    EXPECT_NEAR(a.certificate.value, b.certificate.value, 1e-9 * a.certificate.value);
  }
}

}  // namespace
}  // namespace tessera
