#include "planner/explain/front.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "cost_models/documents/strict_json.h"
#include "cost_models/lengths.h"
#include "planner/explain/planner.h"
#include "planner/plan/amounts.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_value.h"

namespace tessera {
namespace {

struct FrontFigures {
  double tokens_per_s_per_gpu = 0, gpu_seconds = 0, price = 0;
  std::string placement, layouts;
};

FrontFigures figures_of(const Solution& solution, const PlanRequest& request) {
  const Workload& workload = request.workload;
  const double sequence =
      static_cast<double>(workload.prompt_tokens) + mean_length(workload.response_tokens);
  FrontFigures figures;
  figures.tokens_per_s_per_gpu = static_cast<double>(workload.sequences()) * sequence /
                                 solution.step_s.value / solution.gpus();
  figures.gpu_seconds = solution.gpus() * solution.step_s.value;
  figures.price =
      request.cluster.price_per_gpu_hour * solution.billed_gpus * solution.step_s.value / 3600;
  figures.placement = describe(solution.placement);
  if (solution.policy_lag > 0) figures.placement += ", one step off";
  figures.layouts = describe(solution) + describe_types(request.cluster, solution);
  return figures;
}

// The plan of a front that the objective asks for.
const Solution* best_of(const std::vector<Solution>& front, Objective objective) {
  const auto best =
      std::min_element(front.begin(), front.end(), [&](const Solution& a, const Solution& b) {
        return value_of(objective, a) < value_of(objective, b);
      });
  return best == front.end() ? nullptr : &*best;
}

}  // namespace

std::string describe_front(const std::vector<Solution>& front, const PlanRequest& request) {
  std::string out =
      "    GPUs         step   tokens/s/GPU   GPU s/step      price  placement: layouts\n";
  const Solution* const best = best_of(front, request.objective);
  for (const Solution& solution : front) {
    const FrontFigures figures = figures_of(solution, request);
    std::array<char, 16> price{"-"};
    if (figures.price > 0) std::snprintf(price.data(), price.size(), "%.3f", figures.price);
    std::array<char, 96> line{};
    std::snprintf(line.data(), line.size(), "%s %6d %12s %14.1f %12.2f %10s  ",
                  &solution == best ? "*" : " ", solution.gpus(),
                  in_seconds(solution.step_s).c_str(), figures.tokens_per_s_per_gpu,
                  figures.gpu_seconds, price.data());
    out += line.data() + figures.placement + ": " + figures.layouts + "\n";
  }
  const std::vector<int> tried = pareto_counts(request.cluster);
  std::string counts;
  for (const int count : tried) counts += (counts.empty() ? "" : ", ") + std::to_string(count);
  out += "* best by " + std::string(name_of(request.objective));
  const bool costs = request.objective == Objective::cost;
  if (costs && !(request.cluster.price_per_gpu_hour > 0)) {
    out += " (in GPU seconds: the cluster states no price_per_gpu_hour)";
  }
  out += "\ntried at most " + counts +
         " GPUs; a number that is not listed holds no plan, or none faster than fewer GPUs do\n";
  return out;
}

std::string front_json(const std::vector<Solution>& front, const PlanRequest& request) {
  Node root = map_node(), plans = list_node(), tried = list_node();
  const Solution* const best = best_of(front, request.objective);
  for (const Solution& solution : front) {
    const FrontFigures figures = figures_of(solution, request);
    Node each = map_node();
    add(each, "gpus", node_of(std::int64_t{solution.gpus()}));
    add(each, "step_s", node_of(solution.step_s));
    add(each, "tokens_per_s_per_gpu", node_of(figures.tokens_per_s_per_gpu));
    add(each, "gpu_s", node_of(figures.gpu_seconds));
    add(each, "best", node_of(&solution == best));
    if (figures.price > 0) add(each, "price", node_of(figures.price));
    add(each, "placement", node_of(figures.placement));
    add(each, "layouts", node_of(figures.layouts));
    plans.items.push_back(std::move(each));
  }
  for (const int count : pareto_counts(request.cluster)) {
    tried.items.push_back(node_of(std::int64_t{count}));
  }
  add(root, "objective", node_of(name_of(request.objective)));
  add(root, "pareto", std::move(plans));
  add(root, "tried", std::move(tried));
  return json_text(root);
}

}  // namespace tessera
