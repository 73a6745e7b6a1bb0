#include "cost_models/layout/place_overlaps.h"

#include <algorithm>

#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

constexpr std::size_t kMostPairs = 10'000'000;  // of places, sources and kinds of tensors

std::array<int, 6> key_of(const ParallelLayout& layout, const RankCoord& coord, bool stored) {
  const ExpertCoord expert = expert_coord(layout, coord);
  const bool sharded = stored && layout.dp_shard > 1;
  return {coord.tp,   coord.pp,  sharded ? coord.dp_shard : 0,
          expert.etp, expert.ep, sharded ? expert.edp : 0};
}

}  // namespace

int PlaceOverlaps::CoordClasses::add(const ParallelLayout& layout, const RankCoord& coord,
                                     bool stored) {
  const auto [found, fresh] =
      ids.try_emplace(key_of(layout, coord, stored), static_cast<int>(coords.size()));
  if (fresh) coords.push_back(coord);
  return found->second;
}

PlaceOverlaps::PlaceOverlaps(const ParameterTable& table, const RankMap& from, const RankMap& to,
                             const ReshardOptions& options)
    : options_(options) {
  for (std::size_t i = 0; i < from.ranks.size(); ++i) {
    const int source = sources_.add(from.layout, from.coords[i], true);
    source_of_rank_[from.ranks[i]] = source;
    sources_of_node_[node(from.ranks[i])].push_back(source);
  }
  for (auto& [node, sources] : sources_of_node_) {
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  }
  for (const RankCoord& coord : to.coords) {
    place_of_index_.push_back(places_.add(to.layout, coord, false));
  }
  const AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  too_many_ = alike.first.size() * places_.coords.size() * sources_.coords.size() > kMostPairs;
  if (too_many_) return;
  wanted_.assign(places_.coords.size(), 0);
  kept_.assign(places_.coords.size(), std::vector<std::int64_t>(sources_.coords.size(), 0));
  for (std::size_t k = 0; k < alike.first.size(); ++k) {
    add_kind(table.rows[static_cast<std::size_t>(alike.first[k])], alike.count[k], from, to);
  }
}

int PlaceOverlaps::source(int rank) const {
  const auto found = source_of_rank_.find(rank);
  return found == source_of_rank_.end() ? -1 : found->second;
}

const std::vector<int>& PlaceOverlaps::sources_on(int node) const {
  static const std::vector<int> none;
  const auto found = sources_of_node_.find(node);
  return found == sources_of_node_.end() ? none : found->second;
}

std::int64_t PlaceOverlaps::absent(int place, const std::vector<int>& sources) {
  const auto [found, fresh] = absent_.try_emplace({place, sources}, 0);
  if (!fresh) return found->second;
  for (const Kind& kind : kinds_) {
    const auto& wanted = kind.places[static_cast<std::size_t>(place)];
    if (!wanted) continue;
    std::vector<Box> rest{*wanted};
    for (const int source : sources) {
      const auto& held = kind.sources[static_cast<std::size_t>(source)];
      if (!held) continue;
      std::vector<Box> still;
      for (const Box& box : rest) {
        const auto pieces = subtract(box, *held);
        still.insert(still.end(), pieces.begin(), pieces.end());
      }
      rest = std::move(still);
    }
    for (const Box& box : rest) found->second += kind.count * volume(box);
  }
  return found->second;
}

void PlaceOverlaps::add_kind(const Parameter& parameter, int count, const RankMap& from,
                             const RankMap& to) {
  Kind& kind = kinds_.emplace_back();
  kind.count = count;
  for (const RankCoord& coord : places_.coords) {
    kind.places.push_back(compute_box(parameter, to.layout, coord));
  }
  for (const RankCoord& coord : sources_.coords) {
    kind.sources.push_back(stored_box(parameter, from.layout, coord));
  }
  for (std::size_t p = 0; p < kind.places.size(); ++p) {
    if (!kind.places[p]) continue;
    wanted_[p] += count * volume(*kind.places[p]);
    for (std::size_t s = 0; s < kind.sources.size(); ++s) {
      if (kind.sources[s]) {
        kept_[p][s] += count * volume(intersect(*kind.places[p], *kind.sources[s]));
      }
    }
  }
}

}  // namespace tessera
