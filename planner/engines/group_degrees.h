// Degrees that roles on the same GPUs have in common where an engine keeps one set of process
// groups in a process, as Megatron's parallel_state ("mpu") does.
//
// Plain values and pure functions.
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <utility>

#include "planner/engines/capabilities.h"

namespace tessera {

/// What one set of groups is made for (megatron.core.parallel_state.initialize_model_parallel).
struct GroupDegrees {
  int tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1;
  /// Of roles that agree in all of their layout (layout_degrees), else as here.
  int dp_shard = 1, head_layers = 0;
  bool sequence_parallel = false, ulysses = false;
  auto operator<=>(const GroupDegrees&) const = default;
};

/// Of a ParallelLayout or of Degrees.
template <class Layout>
GroupDegrees group_degrees(const Layout& layout) {
  return {layout.tp, layout.pp, layout.vpp, layout.cp, layout.ep, layout.etp};
}

/// All that tells the layout of a candidate on given GPUs from another.
template <class Candidate>
GroupDegrees layout_degrees(const Candidate& candidate) {
  GroupDegrees all = group_degrees(candidate);
  all.dp_shard = candidate.dp_shard;
  all.head_layers = candidate.head_layers;
  all.sequence_parallel = candidate.sequence_parallel;
  all.ulysses = candidate.ulysses;
  return all;
}

/// The degrees under the names that files and messages use.
inline std::array<std::pair<std::string_view, int>, 6> named(const GroupDegrees& groups) {
  return {{{"tp", groups.tp},
           {"pp", groups.pp},
           {"vpp", groups.vpp},
           {"cp", groups.cp},
           {"ep", groups.ep},
           {"etp", groups.etp}}};
}

/// True for roles that must agree in their group degrees with all others of which this is true on
/// the same GPUs. Served roles have processes of their own.
inline bool shares_groups(const Capabilities& can, Role role) {
  const bool served = role == Role::rollout || (role == Role::reward && can.serving.reward);
  return can.pools.one_set_of_groups && !served;
}

/// Why roles on the same GPUs agree: the end of a message about those that do not.
inline std::string why_groups_agree(std::string_view engine) {
  return "engine '" + std::string(engine) +
         "' has one set of process groups (Megatron's mpu) for all roles on the same GPUs that "
         "train or score, so they share tp, pp, vpp, cp, ep and etp";
}

}  // namespace tessera
