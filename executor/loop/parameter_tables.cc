#include "executor/loop/parameter_tables.h"

#include <algorithm>

#include "planner/plan/plan.h"

namespace tessera {

ParameterTables parameter_tables(const Plan& plan) {
  ParameterTables tables;
  for (const RolePlan& role : plan.roles) {
    const ModelSpec model = plan.model_of(role.role);
    const auto same = std::find_if(tables.by_role.begin(), tables.by_role.end(),
                                   [&](const auto& each) { return each.second->model == model; });
    auto table = same != tables.by_role.end()
                     ? same->second
                     : std::make_shared<const ParameterTable>(parameter_table(model));
    tables.by_role.emplace(role.role, std::move(table));
  }
  return tables;
}

}  // namespace tessera
