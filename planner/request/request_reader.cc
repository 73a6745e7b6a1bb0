#include "planner/request/request_reader.h"

#include <optional>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/plan/model_source.h"
#include "planner/request/objective.h"

namespace tessera {
namespace {

void read_objective(PlanRequest& request, const std::string& name, Problems& problems) {
  if (const auto objective = objective_from(name)) {
    request.objective = *objective;
    return;
  }
  const std::vector<std::string> known = objective_names();
  std::string all = known.front();
  for (std::size_t i = 1; i < known.size(); ++i) {
    all += (i + 1 == known.size() ? " or " : ", ") + known[i];
  }
  problems.push_back({"--objective", "", "'" + name + "'", all, did_you_mean(name, known)});
}

void read_model(PlanRequest& request, const char* key, const std::string& where,
                Problems& problems) {
  if (where.empty()) return;
  if (auto model = read_model_source(where, problems)) {
    request.models.emplace(key, *std::move(model));
  }
}

}  // namespace

PlanRequest read_request(const RequestNames& names, Problems& problems) {
  PlanRequest request;
  request.engine = names.engine;
  request.fixed = parse_settings(names.fixed, problems);
  read_objective(request, names.objective, problems);
  request.risk = names.risk;
  request.one_step_off = names.one_step_off;
  if (names.log_probs) request.choices.log_probs = ToldLogProbs::told;
  check_risk(names.risk, problems);
  read_model(request, "actor", names.model, problems);
  if (auto cluster = read_cluster_spec(names.cluster, problems)) {
    request.cluster = *std::move(cluster);
  }
  if (auto workload = read_workload(names.workload, problems)) {
    request.workload = *std::move(workload);
    const Workload& asked = request.workload;
    read_model(request, "critic", names.critic.empty() ? asked.critic_model : names.critic,
               problems);
    read_model(request, "reward", names.reward.empty() ? asked.reward_model : names.reward,
               problems);
  }
  set_adapters(request, names.lora);
  if (names.mtp) request.mtp[Role::actor] = *names.mtp;
  return request;
}

}  // namespace tessera
