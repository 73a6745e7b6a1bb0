// Megatron-LM's arguments for the trained roles.
#include <algorithm>

#include "cost_models/documents/problem.h"
#include "cost_models/packing.h"
#include "planner/engines/engine.h"
#include "planner/interop/config/recompute_modules.h"
#include "planner/interop/config/stage_text.h"
#include "planner/interop/files/arguments.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/script.h"
#include "planner/interop/megatron/megatron.h"
#include "planner/interop/megatron/megatron_model.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

Words layout_arguments(const RolePlan& role, const ModelSpec& model) {
  const ParallelLayout& layout = role.layout;
  Words words;
  put(words, "--tensor-model-parallel-size", layout.tp);
  put(words, "--pipeline-model-parallel-size", layout.pp);
  put(words, "--context-parallel-size", layout.cp);
  if (layout.ep > 1) put(words, "--expert-model-parallel-size", layout.ep);
  if (model.moe) put(words, "--expert-tensor-parallel-size", layout.etp);  // else Megatron takes tp
  const StageEnds ends = stage_ends(layout.stages);
  const bool uneven = ends.first > 0 || ends.last > 0;
  if (layout.pp > 1 && (!ends.others_alike || (layout.vpp > 1 && uneven))) {
    put(words, "--pipeline-model-parallel-layout",
        stage_text(layout.stages, held_mtp_layers(model)));
  } else if (layout.vpp > 1) {
    put(words, "--num-layers-per-virtual-pipeline-stage",
        layout.stages[0].last - layout.stages[0].first);
  } else if (layout.pp > 1) {
    if (ends.first > 0) put(words, "--decoder-first-pipeline-num-layers", ends.first);
    if (ends.last > 0) put(words, "--decoder-last-pipeline-num-layers", ends.last);
  }
  if (layout.sequence_parallel) words.emplace_back("--sequence-parallel");
  if (layout.zero == 1) words.emplace_back("--use-distributed-optimizer");
  if (layout.dp > 1) {  // as the prediction counts
    words.emplace_back("--overlap-grad-reduce");
    if (layout.zero == 1) words.emplace_back("--overlap-param-gather");
  }
  if (role.recompute == Recompute::selective) {
    put(words, "--recompute-granularity", "selective");
    words.emplace_back("--recompute-modules");
    for (const std::string_view module : recompute_modules(model)) words.emplace_back(module);
  }
  if (role.recompute == Recompute::full) {
    put(words, "--recompute-granularity", "full");
    put(words, "--recompute-method", "uniform");
    put(words, "--recompute-num-layers", std::int64_t{1});
  }
  if (role.dtypes.param == DType::bf16) words.emplace_back("--bf16");
  if (role.dtypes.param == DType::fp16) words.emplace_back("--fp16");
  return words;
}

// Sequences per micro-batch: Megatron-LM's batches are sequences of one length. Virtual stages take
// a multiple of pp of them, which one sequence in each is at least (fills_rounds; the plan has been
// checked).
void batch_arguments(const Plan& plan, const RolePlan& role, Words& words, Export& out) {
  const InterleavedCount rule = traits_of(plan.engine).pipeline.interleaved;
  const std::int64_t round = batches_of_round(rule, role.layout.pp, role.layout.vpp);
  const Workload& work = plan.workload;
  const std::int64_t longest = longest_sequence(work);
  const std::int64_t per_replica = role.batching.mini_batch / role.layout.dp;
  std::int64_t micro =
      std::clamp<std::int64_t>(role.batching.update_tokens / longest, 1, per_replica);
  while (micro > 1 && per_replica % (micro * round) != 0) --micro;
  put(words, "--seq-length", longest);
  put(words, "--micro-batch-size", micro);
  put(words, "--global-batch-size", role.batching.mini_batch);
  if (micro * longest != role.batching.update_tokens) {
    out.notes.push_back("Megatron-LM counts micro-batches in sequences: " + std::to_string(micro) +
                        " of up to " + std::to_string(longest) + " tokens stand for the " +
                        std::string(name_of(role.role)) + "'s limit of " +
                        std::to_string(role.batching.update_tokens) + " tokens.");
  }
}

void write_megatron(const Plan& plan, const ExportTarget& target, const ExportOptions&, Export& out,
                    Problems& problems) {
  const auto environment = environment_of(plan, target);
  for (const RolePlan& role : plan.roles) {
    if (role.role != Role::actor && role.role != Role::critic) continue;
    const JobShape shape = shape_of(plan);
    ModelSource source = plan.models.at(role.model);
    source.spec.mtp = role.mtp;
    Words words = megatron_model_arguments(source, "/models/" + role.model, out.notes, problems);
    if (plan.model_of(role.role).moe && plan.model_of(role.role).mlp_bias && role.layout.etp > 1) {
      problems.push_back({"plan", "/roles",
                          "expert tensor parallelism " + std::to_string(role.layout.etp) +
                              " of experts with biases",
                          "1", "transformer_config.py: biases of experts need it"});
    }
    const Words layout = layout_arguments(role, plan.model_of(role.role));
    words.insert(words.end(), layout.begin(), layout.end());
    batch_arguments(plan, role, words, out);
    const std::string name(name_of(role.role));
    out.files.push_back(
        {name + ".sh",
         script_head(plan,
                     "Megatron-LM arguments of the " + name +
                         ". Source it and use \"${megatron_arguments[@]}\", or run it with the "
                         "training script first and its own arguments behind.") +
             export_lines(environment) + "\n" + bash_array("megatron_arguments", words) +
             "\nif [ \"${BASH_SOURCE[0]}\" = \"$0\" ]; then\n" + rendezvous_lines(shape) +
             "  exec torchrun " + torchrun_shape(shape) +
             " \\\n    \"$@\" \"${megatron_arguments[@]}\"\nfi\n",
         true});
  }
  if (out.files.empty()) {
    problems.push_back({"plan", "/roles", "no trained role", "an actor or a critic", ""});
  }
  out.notes.emplace_back(
      "Megatron-LM trains one model: the rollout, the reshard and the other roles are the "
      "caller's. "
      "Its ranks are in the order tp, cp, ep, dp, pp.");
}

}  // namespace

ExportTarget megatron_target() {
  return {.name = "megatron",
          .meaning = "Megatron-LM's arguments",
          .engines = {"megatron"},
          .program = ExportedProgram::megatron,
          .write = write_megatron,
          .megatron_kernels = true};
}

}  // namespace tessera
