#include "executor/bench/reshard_case.h"

#include <cctype>
#include <numeric>
#include <optional>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/reshard_plan.h"

namespace tessera {
namespace {

RankMap map_of(RankOrder order, const ParallelLayout& layout, std::span<const int> ranks,
               const RankMap* training, Problems& problems) {
  return make_rank_map(order, layout, ranks, training, "bench", problems);
}

/// Coordinates with the replicas fastest: an FSDP shard then lies inside its rank's slice.
std::vector<int> replicas_fastest(const ParallelLayout& layout) {
  std::vector<int> ranks;
  const int model = layout.tp * layout.pp, dp = layout.dp;
  for (int d = 0; d < dp; ++d) {
    for (int m = 0; m < model; ++m) ranks.push_back(m * dp + d);
  }
  return ranks;
}

/// Appends a Problem where the text does not fit.
ParallelLayout read_layout(const std::string& text, std::int64_t layers, int ranks,
                           Problems& problems) {
  ParallelLayout layout;
  int replicas = 0;
  const auto refuse = [&] {
    problems.push_back({.place = "layout",
                        .found = text,
                        .expected = "degrees such as tp4, tp2pp2 or fsdp4 that fit on " +
                                    std::to_string(ranks) + " ranks, and at most " +
                                    std::to_string(layers) + " stages"});
    return ParallelLayout{};
  };
  for (std::size_t i = 0; i < text.size();) {
    std::string name, number;
    for (; i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])); ++i) {
      name += text[i];
    }
    for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i) {
      number += text[i];
    }
    if (number.empty() || number.size() > 4) return refuse();
    const int degree = std::stoi(number);
    int* const field = name == "tp"     ? &layout.tp
                       : name == "pp"   ? &layout.pp
                       : name == "fsdp" ? &layout.dp_shard
                       : name == "dp"   ? &replicas
                       : name == "ep"   ? &layout.ep
                       : name == "etp"  ? &layout.etp
                                        : nullptr;
    if (field == nullptr || degree < 1) return refuse();
    *field = degree;
  }
  const int each = layout.tp * layout.pp * layout.dp_shard;
  if (replicas == 0) replicas = ranks / each;
  layout.dp = replicas * layout.dp_shard;
  if (each * replicas != ranks || layout.pp > layers) return refuse();
  if (layout.dp_shard > 1) layout.zero = 3;
  layout.stages = even_stages(layers, layout.pp);
  validate(layout, layers, ranks, "", "layout", problems);
  return layout;
}

RankMap best_rollout_map(const ParameterTable& table, const RankMap& training,
                         const ParallelLayout& layout, DType dtype) {
  std::optional<RankMap> best;
  std::int64_t least = 0;
  const auto consider = [&](RankOrder order, std::span<const int> ranks) {
    Problems problems;
    RankMap map = map_of(order, layout, ranks, &training, problems);
    if (!problems.empty()) return;
    const ReshardPlan plan = plan_reshard(model_tensors(table, training, map, dtype));
    if (best && plan.bytes_received.value >= least) return;
    least = plan.bytes_received.value;
    best = std::move(map);
  };
  consider(RankOrder::strided, training.ranks);
  consider(RankOrder::contiguous, training.ranks);
  consider(RankOrder::list, replicas_fastest(layout));
  TESSERA_CHECK(best.has_value());
  return *best;
}

}  // namespace

void check_cases(std::span<const ReshardCase> cases, const ModelSpec& model, int ranks) {
  Problems problems;
  for (const ReshardCase& each : cases) {
    for (const std::string& layout : {each.from, each.to}) {
      read_layout(layout, model.layers, ranks, problems);
    }
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
}

ReshardMaps maps_of(const ReshardCase& which, const ModelSpec& model, const ParameterTable& table,
                    int ranks, DType dtype) {
  Problems problems;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const ParallelLayout from = read_layout(which.from, model.layers, ranks, problems);
  const ParallelLayout to = read_layout(which.to, model.layers, ranks, problems);
  ReshardMaps maps;
  if (problems.empty()) {
    maps.training = map_of(RankOrder::contiguous, from, all, nullptr, problems);
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  maps.rollout = best_rollout_map(table, maps.training, to, dtype);
  return maps;
}

}  // namespace tessera
