#include "executor/config/run_config_vllm.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "executor/http/http.h"
#include "executor/vllm/requests/generate_call.h"
#include "planner/engines/engine.h"
#include "planner/engines/vllm_weights.h"
#include "planner/plan/plan.h"
#include "planner/plan/served_memory.h"

namespace tessera {
namespace {

constexpr double kHottest = 2;  // vllm/sampling_params.py, _verify_args

/// Ranks of one host, whose memory the workers map.
bool one_host(const Plan& plan) { return plan.world_size() <= plan.cluster.gpus_per_node; }

/// Some rank of the rollout trains the actor, too.
bool shares_ranks(const Plan& plan) {
  const RolePlan *rollout = plan.find(Role::rollout), *actor = plan.find(Role::actor);
  if (rollout == nullptr || actor == nullptr) return false;
  const std::vector<int> a = rank_map_of(plan, Role::rollout).ranks;
  const std::vector<int> b = rank_map_of(plan, Role::actor).ranks;
  return std::any_of(a.begin(), a.end(),
                     [&](int rank) { return std::find(b.begin(), b.end(), rank) != b.end(); });
}

void refuse_plan(ObjectReader& reader, const Plan& plan) {
  const auto refuse_if = [&](bool is, const std::string& expected, const std::string& hint = {}) {
    if (is) reader.refuse("engine", expected, hint);
  };
  const RolePlan *rollout = plan.find(Role::rollout), *actor = plan.find(Role::actor);
  if (rollout == nullptr || actor == nullptr || plan.reshard.empty()) {
    return refuse_if(true, "tessera: the plan brings no weights of an actor to a rollout");
  }
  refuse_if(plan.reshard.front().mode == ReshardMode::full,
            "tessera, or a minimal reshard: vLLM's workers read the trainer's own memory");
  refuse_if(actor->offload.parameters,
            "tessera, or an actor whose parameters stay on the device, where vLLM reads them");
  refuse_if(!one_host(plan), "tessera: vLLM's workers read memory of ranks on their own host");
  for (const std::string& reason : vllm_refusals(plan.model_of(Role::actor), rollout->layout)) {
    reader.refuse("engine", "tessera", reason);
  }
}

void read_servers(ObjectReader& reader, const Plan& plan, VllmOptions& vllm) {
  reader.list("servers", vllm.servers, false);
  if (vllm.servers.empty()) return;
  for (const std::string& server : vllm.servers) {
    if (!is_server_address(server)) reader.refuse("servers", "addresses as http://127.0.0.1:8000");
  }
  const int replicas = plan.find(Role::rollout)->layout.dp;
  if (static_cast<int>(vllm.servers.size()) != replicas) {
    reader.refuse("servers", std::to_string(replicas) + " servers, one a replica of the rollout");
  }
}

/// Behind the servers and the way of the weights, which say whether there can be any.
void read_restarts(ObjectReader& reader, VllmOptions& vllm) {
  const bool sent = vllm.transport == WeightTransport::messages;
  const bool can = vllm.servers.empty() && !sent;
  if (!can) vllm.restarts = 0;
  reader.optional("restarts", vllm.restarts, kNotNegative);
  if (can || vllm.restarts == 0) return;
  reader.refuse("restarts", sent ? "0 with 'weights: messages': the ranks that send weights have "
                                   "gone on when a server is lost"
                                 : "0 with servers that the run has not started");
}

void read_options(ObjectReader& reader, const Plan& plan, VllmOptions& vllm) {
  if (plan.find(Role::rollout) != nullptr) read_servers(reader, plan, vllm);
  if (reader.find("program") != nullptr) {
    vllm.program.clear();
    reader.list("program", vllm.program);
    if (vllm.program.empty()) reader.refuse("program", "at least one word");
  }
  reader.list("arguments", vllm.arguments, false);
  reader.optional("gpu_memory_utilization", vllm.gpu_memory_utilization,
                  Real{.least = 0, .most = 1, .above = true});
  reader.optional("enforce_eager", vllm.enforce_eager);
  reader.optional("enable_prefix_caching", vllm.enable_prefix_caching);
  reader.optional("weights", vllm.transport,
                  std::array{WeightTransport::mapped, WeightTransport::messages});
  if (vllm.transport == WeightTransport::messages && shares_ranks(plan)) {
    reader.refuse("weights",
                  "mapped, or a rollout on ranks of its own: NCCL sends nothing to the GPU that it "
                  "sends from");
  }
  reader.optional("sleep", vllm.sleeps);
  read_restarts(reader, vllm);
  reader.optional("start_timeout_s", vllm.start_timeout_s, kAboveZero);
  reader.optional("request_timeout_s", vllm.request_timeout_s, kAboveZero);
  reader.refuse_unknown_keys();
}

/// Who generates by the plan: of an engine that only exports run, this program.
GenerationEngine planned_engine(const Plan& plan) {
  return engine_named(plan.engine).generation.value_or(GenerationEngine::tessera);
}

}  // namespace

void set_planned_generation(const Plan& plan, RolloutConfig& config) {
  config.engine = planned_engine(plan);
  config.batch_invariant = engine_named(plan.engine).fixed_order.has_value();
  const RolePlan* const rollout = plan.find(Role::rollout);
  if (config.engine != GenerationEngine::vllm || rollout == nullptr) return;
  VllmOptions& vllm = config.vllm;
  vllm.gpu_memory_utilization =
      served_memory_share(plan, *rollout, Phase::gen, vllm.gpu_memory_utilization);
  vllm.sleeps = plan.reshard.empty() || !plan.reshard.front().keep;
}

std::string generation_note(const Plan& plan, const RolloutConfig& config) {
  const GenerationEngine planned = planned_engine(plan);
  const bool priced = engine_named(plan.engine).fixed_order.has_value();
  if (config.engine == planned && config.batch_invariant != priced) {
    const std::string run = config.batch_invariant ? "samples have the same bits in any batch"
                                                   : "sums run in the fastest order";
    return "batch_invariant: " + run + ", which plan '" + plan.engine +
           "' is not for: its prediction of generation and old_log_prob is that of the " +
           (priced ? "fixed order, and slower"
                   : "fastest order, and too quick (plan --engine tessera+invariant)");
  }
  if (config.engine == planned) return "";
  return "engine " + std::string(name_of(config.engine)) + " generates, which plan '" +
         plan.engine + "' is not for: its prediction and memory are those of engine " +
         std::string(name_of(planned));
}

void read_generation_engine(ObjectReader& rollout, const Plan& plan, RolloutConfig& config) {
  rollout.optional("engine", config.engine,
                   std::array{GenerationEngine::tessera, GenerationEngine::vllm});
  const bool vllm = config.engine == GenerationEngine::vllm;
  if (auto options = rollout.object("vllm", false)) {
    if (!vllm) rollout.refuse("vllm", "no 'vllm' without 'engine: vllm'");
    read_options(*options, plan, config.vllm);
  }
  if (!vllm) return;
  refuse_plan(rollout, plan);
  if (config.sampling.temperature > kHottest) {
    rollout.refuse("temperature", "at most 2, which is vLLM's limit");
  }
  if (logprobs_mode(config.sampling) == nullptr) {
    rollout.refuse("temperature",
                   "1 with top_k, top_p or min_p: vLLM has the log-probs of all tokens "
                   "then, and otherwise those of the tokens that are left");
  }
}

void refuse_reshard_options_of_vllm(ObjectReader& root) {
  auto reader = root.object("reshard", false);
  if (!reader) return;
  for (const char* key : {"storage", "transport", "bucket_bytes", "wire", "wire_from_step",
                          "incremental", "overlap", "preload"}) {
    if (reader->find(key) != nullptr) {
      reader->refuse(key, std::string("no '") + key +
                              "' with engine vllm, whose workers read the trainer's memory");
    }
  }
}

}  // namespace tessera
