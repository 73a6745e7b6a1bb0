// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/question_json.h"

#include "cost_models/spec/preset_algorithms.h"
#include "planner/request/risk.h"

namespace tessera::gui {

void read_question(ObjectReader& reader, PlanQuery& question) {
  reader.optional("model", question.model);
  reader.optional("cluster", question.cluster);
  reader.optional("workload", question.workload);
  reader.optional("nodes", question.nodes, kNotNegative);
  reader.optional("gpus_per_node", question.gpus_per_node, kNotNegative);
  reader.optional("engine", question.engine);
  reader.optional("objective", question.objective);
  reader.optional("risk", question.risk);
  if (!(question.risk >= kLeastRisk && question.risk <= kMostRisk)) {
    reader.refuse("risk", "a number from 0.000001 to 0.5");  // as --risk does
  }
  reader.optional("prompts_per_step", question.batch.prompts_per_step, kNotNegative);
  reader.optional("samples_per_prompt", question.batch.samples_per_prompt, kNotNegative);
  reader.optional("response_tokens", question.batch.response_tokens, kNotNegative);
  reader.optional("longest_response", question.batch.longest_response, kNotNegative);
  reader.optional("prompt_tokens", question.batch.prompt_tokens, kNotNegative);
  reader.optional("algorithm", question.batch.algorithm);
  const std::string& algorithm = question.batch.algorithm;
  if (!algorithm.empty() && !is_preset_algorithm(algorithm)) {
    reader.refuse("algorithm", "ppo, grpo, or an empty text: as the workload says");
  }
  reader.optional("price_per_gpu_hour", question.price_per_gpu_hour, kFromZero);
  reader.optional("topology", question.topology);
  reader.list("fixed", question.fixed, false);
}

void add_question(Node& map, const PlanQuery& question) {
  Node fixed = list_node();
  for (const std::string& word : question.fixed) fixed.items.push_back(node_of(word));
  add(map, "model", node_of(question.model));
  add(map, "cluster", node_of(question.cluster));
  add(map, "workload", node_of(question.workload));
  add(map, "nodes", node_of(question.nodes));
  add(map, "gpus_per_node", node_of(question.gpus_per_node));
  add(map, "engine", node_of(question.engine));
  add(map, "objective", node_of(question.objective));
  add(map, "risk", node_of(question.risk));
  add(map, "prompts_per_step", node_of(question.batch.prompts_per_step));
  add(map, "samples_per_prompt", node_of(question.batch.samples_per_prompt));
  add(map, "response_tokens", node_of(question.batch.response_tokens));
  add(map, "longest_response", node_of(question.batch.longest_response));
  add(map, "prompt_tokens", node_of(question.batch.prompt_tokens));
  add(map, "algorithm", node_of(question.batch.algorithm));
  add(map, "price_per_gpu_hour", node_of(question.price_per_gpu_hour));
  add(map, "topology", node_of(question.topology));
  add(map, "fixed", std::move(fixed));
}

}  // namespace tessera::gui
