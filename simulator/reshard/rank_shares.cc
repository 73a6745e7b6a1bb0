#include "simulator/reshard/rank_shares.h"

#include <optional>

#include "cost_models/layout/sharding.h"

namespace tessera {

std::vector<RankShare> rank_shares(const ParameterTable& table, const RankMap& from,
                                   const RankMap& to) {
  const AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  std::vector<RankShare> shares;
  for (std::size_t i = 0; i < to.ranks.size(); ++i) {
    RankShare& share = shares.emplace_back();
    const int source = from.index_of(to.ranks[i]);
    for (std::size_t kind = 0; kind < alike.first.size(); ++kind) {
      const Parameter& parameter = table.rows[static_cast<std::size_t>(alike.first[kind])];
      const std::int64_t count = alike.count[kind];
      std::optional<Box> held;
      if (source >= 0) {
        held = stored_box(parameter, from.layout, from.coords[static_cast<std::size_t>(source)]);
      }
      const std::optional<Box> needed = compute_box(parameter, to.layout, to.coords[i]);
      if (held) share.held += count * volume(*held);
      if (needed) share.needed += count * volume(*needed);
      if (held && needed) share.both += count * volume(intersect(*held, *needed));
    }
  }
  return shares;
}

}  // namespace tessera
