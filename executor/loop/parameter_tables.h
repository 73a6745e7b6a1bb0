// ParameterTables: the parameter table of every role's model, each model's built once per start.
//
// Plain data, made from the plan by make_worker and handed on. Torch-free.
#pragma once

#include <map>
#include <memory>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;

struct ParameterTables {
  std::map<Role, std::shared_ptr<const ParameterTable>> by_role;  // equal models share one

  const ParameterTable& of(Role role) const { return *by_role.at(role); }
};

ParameterTables parameter_tables(const Plan& plan);

}  // namespace tessera
