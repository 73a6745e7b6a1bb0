#include "cli/names.h"

#include "planner/engines/engine.h"
#include "planner/request/settings.h"

namespace tessera {

std::string joined(std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string names_of(std::span<const Role> roles) {
  std::vector<std::string> names;
  for (const Role role : roles) names.emplace_back(name_of(role));
  return joined(names);
}

std::string engine_choices() {
  std::vector<std::string> names = engine_names();
  names.emplace_back(kAnyEngine);
  return joined(names);
}

std::string planning_names() {
  std::vector<std::string> fields;
  for (const Field field : every_field()) fields.emplace_back(name_of(field));
  fields.emplace_back("gpu");
  return "ROLE is one of " + names_of(kEveryRole) + ".\nFIELD is one of " + joined(fields) +
         ".\n`tessera list fields` and `tessera list engines` say what they mean; `tessera list "
         "models`,\n"
         "clusters, workloads and calibrations name the presets.\n\n"
         "Examples:\n"
         "  tessera plan --model qwen2.5-7b --cluster h100-8 --workload grpo-7b-1k -o plan.json\n"
         "  tessera plan ... --engine verl --fix rollout.tp=2 actor.recompute=full\n"
         "  tessera plan ... --vary rollout.tp=1,2,4\n";
}

}  // namespace tessera
