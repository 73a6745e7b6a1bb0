#include "simulator/reshard/gathered_flows.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

using Elements = std::map<std::pair<int, int>, std::int64_t>;  // by sender and receiver

/// A part of a tensor, and which positions of the trainer hold it.
struct Held {
  Box box;
  std::vector<std::size_t> by;
};

class Gather {
 public:
  Gather(const ParameterTable& table, const RankMap& trainer, int ranks_per_node)
      : table_(table), trainer_(trainer), per_node_(ranks_per_node) {}

  /// What the ranks at these positions get of each.
  Elements onto(const std::vector<std::size_t>& receivers) const {
    Elements sums;
    const AlikeParameters alike = alike_parameters(table_, trainer_.layout, trainer_.layout);
    for (std::size_t kind = 0; kind < alike.first.size(); ++kind) {
      const Parameter& row = table_.rows[static_cast<std::size_t>(alike.first[kind])];
      for (const Held& part : parts_of(row)) {
        for (const std::size_t receiver : receivers) {
          const std::size_t sender = nearest(part.by, receiver);
          sums[{trainer_.ranks[sender], trainer_.ranks[receiver]}] +=
              alike.count[kind] * volume(part.box);
        }
      }
    }
    return sums;
  }

 private:
  std::vector<Held> parts_of(const Parameter& row) const {
    std::vector<Held> parts;
    for (std::size_t at = 0; at < trainer_.ranks.size(); ++at) {
      const std::optional<Box> box = stored_box(row, trainer_.layout, trainer_.coords[at]);
      if (!box) continue;
      const auto known = std::find_if(parts.begin(), parts.end(),
                                      [&](const Held& part) { return part.box == *box; });
      if (known == parts.end()) {
        parts.push_back({*box, {at}});
      } else {
        known->by.push_back(at);
      }
    }
    return parts;
  }

  std::size_t nearest(const std::vector<std::size_t>& holders, std::size_t receiver) const {
    const RankCoord& to = trainer_.coords[receiver];
    const auto distance = [&](std::size_t holder) {
      const RankCoord& from = trainer_.coords[holder];
      const bool other_copy = from.dp_replicate != to.dp_replicate || from.cp != to.cp;
      const int away = trainer_.ranks[holder] / per_node_ - trainer_.ranks[receiver] / per_node_;
      return std::tuple(holder != receiver, other_copy, away != 0, trainer_.ranks[holder]);
    };
    return *std::min_element(holders.begin(), holders.end(), [&](std::size_t a, std::size_t b) {
      return distance(a) < distance(b);
    });
  }

  const ParameterTable& table_;
  const RankMap& trainer_;
  int per_node_;
};

std::vector<WeightFlow> listed(const Elements& sums) {
  std::vector<WeightFlow> flows;
  for (const auto& [ends, elements] : sums) flows.push_back({ends.first, ends.second, elements});
  return flows;
}

}  // namespace

std::vector<WeightFlow> gathered_flows(const ParameterTable& table, const RankMap& trainer,
                                       int ranks_per_node) {
  std::vector<std::size_t> all(trainer.ranks.size());
  for (std::size_t at = 0; at < all.size(); ++at) all[at] = at;
  return listed(Gather(table, trainer, ranks_per_node).onto(all));
}

std::vector<WeightFlow> broadcast_flows(const ParameterTable& table, const RankMap& trainer,
                                        const std::vector<int>& receivers, int ranks_per_node) {
  Elements sums = Gather(table, trainer, ranks_per_node).onto({0});
  for (const int receiver : receivers) sums[{trainer.ranks.front(), receiver}] += table.elements();
  return listed(sums);
}

}  // namespace tessera
