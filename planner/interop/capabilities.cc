#include "planner/interop/capabilities.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

Capabilities tessera_table() {
  Capabilities table;
  table.engine = "tessera";
  table.zero = {0, 1};
  table.recompute = {Recompute::none};
  table.params = {DType::fp32, DType::bf16, DType::fp16};
  return table;
}

// Appends refusals about one role.
class RoleCheck {
 public:
  RoleCheck(const Capabilities& table, const RolePlan& role, std::string place,
            const std::string& file, Problems& problems)
      : table_(table), role_(role), place_(std::move(place)), file_(file), problems_(problems) {}

  void run() {
    const ParallelLayout& layout = role_.layout;
    refuse_if(!table_.context_parallel && layout.cp > 1, "cp", layout.cp, "1");
    refuse_if(!table_.expert_parallel && layout.ep > 1, "ep", layout.ep, "1");
    refuse_if(!table_.virtual_stages && layout.vpp > 1, "vpp", layout.vpp, "1");
    refuse_if(!table_.fully_sharded && layout.dp_shard > 1, "dp_shard", layout.dp_shard, "1");
    if (role_.role == Role::rollout) {
      refuse_if(layout.pp > table_.most_rollout_pp, "pp", layout.pp,
                "at most " + std::to_string(table_.most_rollout_pp) + " for the rollout");
    }
    if (std::find(table_.zero.begin(), table_.zero.end(), layout.zero) == table_.zero.end()) {
      std::string stages;
      for (const int stage : table_.zero) {
        stages += (stages.empty() ? "" : " or ") + std::to_string(stage);
      }
      refuse("layout/zero", std::to_string(layout.zero), stages);
    }
    if (layout.sequence_parallel && !table_.sequence_parallel) {
      refuse("layout/sequence_parallel", "true", "false");
    }
    if (std::find(table_.recompute.begin(), table_.recompute.end(), role_.recompute) ==
        table_.recompute.end()) {
      refuse("recompute", std::string(name_of(role_.recompute)), "none");
    }
    const Offload& offload = role_.offload;
    if (!table_.offload && (offload.parameters || offload.gradients || offload.optimizer)) {
      refuse("offload", "true", "false");
    }
    if (std::find(table_.params.begin(), table_.params.end(), role_.dtypes.param) ==
        table_.params.end()) {
      refuse("dtypes/param", std::string(name_of(role_.dtypes.param)), "fp32 or bf16");
    }
  }

 private:
  void refuse(const std::string& field, const std::string& found, const std::string& expected) {
    problems_.push_back({file_, place_ + "/" + field, found, expected,
                         "engine '" + table_.engine + "' cannot run the " +
                             std::string(name_of(role_.role)) + " so"});
  }
  void refuse_if(bool outside, const std::string& degree, int found, const std::string& expected) {
    if (outside) refuse("layout/" + degree, std::to_string(found), expected);
  }

  const Capabilities& table_;
  const RolePlan& role_;
  std::string place_;
  const std::string& file_;
  Problems& problems_;
};

}  // namespace

std::vector<std::string> engine_names() { return {"tessera"}; }

std::optional<Capabilities> capabilities_of(std::string_view engine, Problems& problems) {
  if (engine == "tessera") return tessera_table();
  const auto known = engine_names();
  problems.push_back({"", "engine", std::string(engine), "tessera", did_you_mean(engine, known)});
  return std::nullopt;
}

Problems outside_capabilities(const Plan& plan, const std::string& file) {
  Problems problems;
  const auto table = capabilities_of(plan.engine, problems);
  if (!table) {
    problems.back().file = file;
    problems.back().place = "/engine";
    return problems;
  }
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    RoleCheck(*table, plan.roles[i], "/roles/" + std::to_string(i), file, problems).run();
  }
  for (std::size_t i = 0; i < plan.reshard.size(); ++i) {
    if (!plan.reshard[i].keep && !table->unmap) {
      problems.push_back({file, "/reshard/" + std::to_string(i) + "/keep", "false", "true",
                          "engine '" + table->engine + "' keeps the rollout shard mapped"});
    }
  }
  return problems;
}

}  // namespace tessera
