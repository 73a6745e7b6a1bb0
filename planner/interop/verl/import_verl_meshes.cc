// Layouts of training roles from the keys of verl's engines over meshes of FSDP2: VeOmni's and
// torchtitan's. Facts from verl 0.9.1 (workers/engine/{veomni,torchtitan}/transformer_impl.py,
// trainer/config/ref), VeOmni's distributed/parallel_state.py and torchtitan's
// distributed/parallel_dims.py.
#include <algorithm>

#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

const std::string kActor = "actor_rollout_ref.actor.";

// A value of `block`, which the reference has of the actor where it has none of its own.
std::int64_t shared(const VerlImport& in, const std::string& block, const std::string& name,
                    Role role, std::int64_t otherwise, Whole range = kPositive) {
  const std::string engine = block.substr(block.rfind('.') + 1);
  if (role == Role::reference) {
    otherwise = in.integer(kActor + engine + "." + name, otherwise, range);
  }
  return in.integer(block + "." + name, otherwise, range);
}

int degree_of(const VerlImport& in, const std::string& block, const std::string& name, Role role) {
  return static_cast<int>(shared(in, block, name, role, 1, {.least = 1, .most = 1 << 20}));
}

// What shards over context-parallel ranks alone are refused by: a plan cuts weights over replicas.
void refuse_context_shards(VerlImport& in, const std::string& key, const ParallelLayout& layout) {
  in.refuse(key, "1 of " + std::to_string(layout.dp) + " replicas",
            "several, where context parallelism of " + std::to_string(layout.cp) + " shards, too",
            "the engine runs it, but a plan cuts weights over replicas: --set " + key +
                "=2 is the nearest");
}

// Whole experts over `ep` of the `shards` ranks over which weights are cut, which it has to divide.
void read_experts(VerlImport& in, const std::string& key, const ModelSpec& model, int shards,
                  ParallelLayout& layout) {
  if (layout.ep == 1) {
    if (model.moe) layout.etp = layout.tp;
    return;
  }
  if (!model.moe) {
    return in.refuse(key, std::to_string(layout.ep), "1, for the model has no experts",
                     "the engine has no plan of whose parameters to deal out");
  }
  if (model.moe->experts % layout.ep == 0 && shards % layout.ep == 0) return;
  in.refuse(key, std::to_string(layout.ep),
            "a divisor of the " + std::to_string(model.moe->experts) + " experts and of the " +
                std::to_string(shards) + " ranks over which weights are cut",
            "the engine asserts it");
}

}  // namespace

ParallelLayout veomni_layout(VerlImport& in, const std::string& block, const ModelSpec& model,
                             Role role) {
  ParallelLayout layout;
  layout.cp = degree_of(in, block, "ulysses_parallel_size", role);
  if (in.world % layout.cp != 0) {
    in.refuse(block + ".ulysses_parallel_size", std::to_string(layout.cp),
              "a divisor of the " + std::to_string(in.world) + " GPUs");
    return layout;
  }
  layout.ulysses = layout.cp > 1;
  layout.dp = static_cast<int>(in.world / layout.cp);
  // In replicas, where FSDP's own key counts GPUs.
  const std::int64_t asked = shared(in, block, "fsdp_size", role, -1, {.least = -1});
  const std::int64_t size = asked < 0 || asked >= layout.dp ? layout.dp : asked;
  if (size == 0 || layout.dp % size != 0) {
    in.refuse(block + ".fsdp_size", std::to_string(asked),
              "-1 for all GPUs, or a divisor of the " + std::to_string(layout.dp) + " replicas",
              "verl raises a ValueError");
    return layout;
  }
  if (size == 1 && layout.cp > 1 && layout.dp > 1) {
    refuse_context_shards(in, block + ".fsdp_size", layout);
    return layout;
  }
  const auto shards = static_cast<int>(size) * layout.cp;
  if (shards > 1 && in.flag(block + ".enable_full_shard", true)) {
    layout.zero = 3;
    layout.dp_shard = static_cast<int>(size);
  } else if (shards > 1) {
    layout.zero = 2;
    if (size < layout.dp) {
      in.note(block + ": hybrid ZeRO-2 is counted as ZeRO-2 over all GPUs.");
    }
  }
  layout.ep = degree_of(in, block, "expert_parallel_size", role);
  read_experts(in, block + ".expert_parallel_size", model, shards, layout);
  return layout;
}

void read_veomni_memory(VerlImport& in, const std::string& block, RolePlan& role) {
  const bool mixed = in.flag(block + ".mixed_precision", true);
  if (role.role == Role::reference) {
    if (mixed)
      in.note(block + ": the reference's shards are of fp32, which the plan counts in " +
              std::string(name_of(role.dtypes.param)) + ".");
  } else {
    role.dtypes.master = mixed ? DType::fp32 : DType::bf16;
  }
  if (!in.flag(block + ".enable_fsdp_offload", false)) return;
  const bool trained = role.role != Role::reference;
  role.offload = {.parameters = true, .gradients = trained, .optimizer = trained};
  if (role.role == Role::actor) role.host_optimizer = true;
  in.note(block +
          ".enable_fsdp_offload: shards, gradients and states lie on the host, which computes the "
          "step; that each layer's shards travel to the GPU in every pass is not counted.");
}

ParallelLayout torchtitan_layout(VerlImport& in, const std::string& block, const ModelSpec& model,
                                 Role role) {
  ParallelLayout layout;
  layout.tp = degree_of(in, block, "tensor_parallel_size", role);
  layout.cp = degree_of(in, block, "context_parallel_size", role);
  layout.ep = degree_of(in, block, "expert_parallel_size", role);
  const int replicas = degree_of(in, block, "data_parallel_replicate_size", role);
  const int shards = degree_of(in, block, "data_parallel_shard_size", role);
  const int pp = degree_of(in, block, "pipeline_parallel_size", role);
  if (pp > 1) {
    in.refuse(block + ".pipeline_parallel_size", std::to_string(pp), "1",
              "verl's torchtitan engine raises NotImplementedError with stages "
              "(model_forward_step)");
  }
  layout.dp = replicas * shards;
  layout.sequence_parallel = layout.tp > 1;
  const std::int64_t product =
      std::int64_t{replicas} * shards * layout.tp * layout.cp * std::int64_t{pp};
  if (product != in.world) {
    in.refuse(block + ".data_parallel_shard_size", std::to_string(shards),
              "data_parallel_replicate_size x data_parallel_shard_size x tp x cp x pp = " +
                  std::to_string(in.world) + " GPUs, not " + std::to_string(product),
              "torchtitan asserts it");
    return layout;
  }
  if (shards == 1 && layout.cp > 1 && layout.dp > 1) {
    refuse_context_shards(in, block + ".data_parallel_shard_size", layout);
    return layout;
  }
  const std::string resharding = in.text(block + ".reshard_after_forward", "default");
  if (shards * layout.cp > 1) {
    layout.zero = resharding == "never" ? 2 : 3;
    if (layout.zero == 3) layout.dp_shard = shards;
  }
  read_experts(in, block + ".expert_parallel_size", model, shards * layout.cp * layout.tp, layout);
  return layout;
}

Recompute torchtitan_recompute(VerlImport& in) {
  const std::string key = kActor + "torchtitan.activation_checkpoint";
  const std::string mode = in.text(key, "selective");
  if (mode == "full") return Recompute::full;
  if (mode == "none") return Recompute::none;
  if (mode != "selective") in.refuse(key, mode, "selective, full or none");
  return Recompute::selective;
}

}  // namespace tessera
