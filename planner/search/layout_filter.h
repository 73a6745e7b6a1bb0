// The layouts of a role that a search may use, as one value: it answers for a layout, and serves as
// a key.
//
// Plain values; fields as FixedSettings counts them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "planner/request/candidate.h"
#include "planner/request/settings.h"

namespace tessera {

using FieldValues = std::map<Field, std::int64_t>;

/// The values of these fields of a candidate.
FieldValues values_of(const Candidate& candidate, std::span<const Field> fields);

/// Equal filters allow the same layouts. All candidates of one layout are answered alike.
struct LayoutFilter {
  FieldValues required;            // a layout has all of them
  std::set<FieldValues> excluded;  // and of each of these not all

  bool operator()(const Candidate& layout) const;
  auto operator<=>(const LayoutFilter&) const = default;
};

/// All that decides which candidates a search lists for a role, and what it takes for their prices:
/// searches of one request with equal settings of a role share them (FrontStore).
struct RoleSettings {
  FieldValues fixed;  // that the enumeration keeps to
  int view = 0;       // GPU types of the role's pool (spec/node_groups.h)
  /// Of a rollout whose seconds are the least up to the next number of sequences that is listed:
  /// the numbers that were added to the list of a layout (GPUs and degrees), in the order of
  /// adding.
  struct Split {
    std::pair<int, Degrees> layout;
    std::vector<std::int64_t> numbers;
    auto operator<=>(const Split&) const = default;
  };
  std::optional<std::vector<Split>> splits;

  auto operator<=>(const RoleSettings&) const = default;
};

}  // namespace tessera
