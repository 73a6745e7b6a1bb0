// Time and memory of planning: `planner_bench [CASE ...]`, JSON on standard output.
//
// Every case runs in a process of its own, on one thread, so that its peak memory is its own. Times
// are those of the whole answer (request in, plan with certificate and exact reshard out), files
// not included: user_s is the process's CPU time in user mode, which other work on the machine
// hardly changes, wall_s the clock.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"

namespace {

using namespace tessera;

struct Times {
  double user_s = 0, wall_s = 0;
};

Times now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {static_cast<double>(usage.ru_utime.tv_sec) +
              1e-6 * static_cast<double>(usage.ru_utime.tv_usec),
          std::chrono::duration<double>(wall).count()};
}

Times since(const Times& start) {
  const Times end = now();
  return {end.user_s - start.user_s, end.wall_s - start.wall_s};
}

PlanRequest request_on(const char* model, const char* cluster_name, int nodes) {
  Problems problems;
  PlanRequest request;
  const auto spec = read_model_spec(model, problems);
  const auto cluster = read_cluster_spec(cluster_name, problems);
  const auto calibration = find_calibration("h100", problems);
  const auto workload = read_workload("grpo-7b-1k", problems);
  if (!spec || !cluster || !calibration || !workload) {
    for (const Problem& problem : problems) {
      std::fprintf(stderr, "%s\n", to_string(problem).c_str());
    }
    _exit(1);
  }
  request.models["actor"] = {*spec, model, ""};
  request.cluster = *cluster;
  request.cluster.nodes = nodes;
  request.calibration = *calibration;
  request.workload = *workload;
  return request;
}

PlanRequest request_of(const char* model, int nodes, const char* algorithm, const char* engine) {
  PlanRequest request = request_on(model, "h100-64", nodes);
  request.engine = engine;
  request.workload = {};
  Workload& workload = request.workload;
  workload.algorithm = algorithm;
  workload.kl = KlPlace::reward;
  workload.dataflow = preset_dataflow(algorithm, workload.kl, workload.algorithm == "ppo");
  workload.prompts_per_step = 1024;
  workload.samples_per_prompt = workload.algorithm == "ppo" ? 1 : 8;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, 0.5, 2048};
  return request;
}

struct Answer {
  Times times;
  double step_s = 0;
  long long evaluated = 0, pruned = 0;
  bool found = false;
};

Answer answer_of(const std::optional<PlanOutcome>& outcome, const Times& times) {
  Answer answer{.times = times};
  if (!outcome || !std::holds_alternative<Plan>(*outcome)) return answer;
  const Plan& plan = std::get<Plan>(*outcome);
  answer.step_s = plan.prediction.step_s;
  answer.evaluated = plan.certificate.evaluated;
  answer.pruned = plan.certificate.pruned;
  answer.found = true;
  return answer;
}

Answer whole(const PlanRequest& request) {
  Problems problems;
  const Times start = now();
  const auto outcome = make_plan(request, problems);
  return answer_of(outcome, since(start));
}

// The second answer of a planner, after one setting has changed.
Answer again(const PlanRequest& request, const std::vector<std::string>& words) {
  Problems problems;
  Planner planner(request);
  planner.plan({}, Objective::step_time, problems);
  const Times start = now();
  const auto outcome =
      planner.plan(parse_settings(words, problems), Objective::step_time, problems);
  return answer_of(outcome, since(start));
}

struct Case {
  const char* name;
  double target_s;
  std::function<Answer()> run;
};

std::vector<Case> cases() {
  const auto dense = [](const char* model, int nodes) {
    return [=] { return whole(request_of(model, nodes, "ppo", "tessera")); };
  };
  // As window_bench asks, without the window.
  const auto window_edit = [](const char* setting) {
    return [=] { return again(request_on("llama3.1-70b", "meta-h100-24k", 2048), {setting}); };
  };
  return {
      {"4_roles_8b_1024_gpus", 0.4, dense("llama3.1-8b", 128)},
      {"4_roles_70b_1024_gpus", 0.4, dense("llama3.1-70b", 128)},
      {"4_roles_8b_16384_gpus", 2.0, dense("llama3.1-8b", 2048)},
      {"4_roles_70b_16384_gpus", 2.0, dense("llama3.1-70b", 2048)},
      {"whole_space_8b_64_gpus", 10.0,
       [] { return whole(request_of("llama3.1-8b", 8, "grpo", "any")); }},
      {"4_roles_whole_space_deepseek_v3_1024_gpus", 4.0,
       [] { return whole(request_of("deepseek-v3", 128, "ppo", "any")); }},
      {"4_roles_whole_space_qwen3_235b_16384_gpus", 10.0,
       [] { return whole(request_of("qwen3-235b-a22b", 2048, "ppo", "any")); }},
      {"whole_space_deepseek_v3_1024_gpus", 10.0,
       [] { return whole(request_of("deepseek-v3", 128, "grpo", "any")); }},
      {"replan_critic_tp_8b_1024_gpus", 0.1,
       [] { return again(request_of("llama3.1-8b", 128, "ppo", "tessera"), {"critic.tp=4"}); }},
      {"replan_rollout_tp_8b_1024_gpus", 0.1,
       [] { return again(request_of("llama3.1-8b", 128, "ppo", "tessera"), {"rollout.tp=4"}); }},
      {"replan_actor_tp_8b_1024_gpus", 0.1,
       [] { return again(request_of("llama3.1-8b", 128, "ppo", "tessera"), {"actor.tp=4"}); }},
      {"window_edit_actor_dp_70b_16384_gpus", 0.6, window_edit("actor.dp=8")},
      {"window_edit_actor_tp_70b_16384_gpus", 0.6, window_edit("actor.tp=4")},
      {"window_edit_rollout_tp_70b_16384_gpus", 0.6, window_edit("rollout.tp=2")},
  };
}

// One JSON object, without a line end.
bool run_apart(const Case& each) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const Answer answer = each.run();
    if (write(ends[1], &answer, sizeof answer) != sizeof answer) _exit(1);
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  close(ends[1]);
  Answer answer;
  const bool good = read(ends[0], &answer, sizeof answer) == sizeof answer && status == 0;
  close(ends[0]);
  std::printf(
      "    {\"case\": \"%s\", \"user_s\": %.4f, \"target_s\": %.2f, \"wall_s\": %.4f, "
      "\"peak_mib\": %.0f, \"found\": %s, \"step_s\": %.4f, \"evaluated\": %lld, \"pruned\": %lld}",
      each.name, answer.times.user_s, each.target_s, answer.times.wall_s,
      static_cast<double>(usage.ru_maxrss) / 1024, answer.found ? "true" : "false", answer.step_s,
      answer.evaluated, answer.pruned);
  return good;
}

}  // namespace

int main(int count, char** words) {
  bool good = true, first = true;
  std::printf("{\n  \"command\": \"planner_bench\",\n  \"threads\": 1,\n  \"figures\": [\n");
  for (const Case& each : cases()) {
    bool wanted = count < 2;
    for (int i = 1; i < count; ++i) wanted = wanted || std::string(words[i]) == each.name;
    if (!wanted) continue;
    if (!first) std::printf(",\n");
    first = false;
    good = run_apart(each) && good;
  }
  std::printf("\n  ]\n}\n");
  return good ? 0 : 1;
}
