// verl's keys of VeOmni's and torchtitan's meshes: the way back of import_verl_meshes.cc.
#include "planner/interop/verl/verl_writer.h"

namespace tessera {
namespace {

// Whole weights on every rank, which VeOmni's mesh does not have: its shards lie over
// context-parallel ranks, too.
void refuse_whole_weights(VerlWriter& w, const RolePlan& role) {
  if (role.layout.zero != 0 || role.layout.cp == 1) return;
  w.refuse("/roles/" + std::string(name_of(role.role)) + "/layout/zero",
           "0 with cp " + std::to_string(role.layout.cp), "3",
           "the engine shards weights over context-parallel ranks, too");
}

}  // namespace

void write_veomni(VerlWriter& w, const std::string& prefix, const RolePlan& role) {
  refuse_whole_weights(w, role);
  const ParallelLayout& layout = role.layout;
  const bool trained = role.role != Role::reference;
  const bool sharded = layout.zero == 3 && layout.dp_shard < layout.dp;
  const std::int64_t size = sharded ? layout.dp_shard : layout.zero == 0 ? 1 : -1;
  w.set(prefix + ".fsdp_size", size,
        size == 1  ? "no sharding"
        : size < 0 ? "all GPUs"
                   : "shards of each replica");
  w.set(prefix + ".enable_full_shard", layout.zero != 2,
        layout.zero == 2 ? "parameters stay gathered until the backward pass" : "");
  w.set(prefix + ".ulysses_parallel_size", layout.cp);
  w.set(prefix + ".expert_parallel_size", layout.ep);
  if (w.plan.model_of(role.role).linear) {
    // With the default, eager, packed sequences raise (VeOmniEngineConfig).
    for (const char* kernel :
         {".causal_conv1d_implementation", ".chunk_gated_delta_rule_implementation"}) {
      w.text(prefix + kernel, "fla", "of flash-linear-attention: eager takes no packed sequences");
    }
  }
  w.set(prefix + ".param_offload", role.offload.parameters);
  if (!trained) return;
  w.set(prefix + ".optimizer_offload", role.offload.optimizer);
  w.set(prefix + ".mixed_precision", role.dtypes.master == DType::fp32,
        role.dtypes.master == DType::fp32 ? "master weights" : "");
  if (role.host_optimizer) {
    w.set(prefix + ".enable_fsdp_offload", true, "the host computes the step");
  }
}

void write_torchtitan(VerlWriter& w, const std::string& prefix, const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  const int shards = layout.zero == 3 ? layout.dp_shard : layout.zero == 2 ? layout.dp : 1;
  w.set(prefix + ".data_parallel_size", layout.dp);
  w.set(prefix + ".data_parallel_replicate_size", layout.dp / shards);
  w.set(prefix + ".data_parallel_shard_size", shards);
  w.text(prefix + ".reshard_after_forward", layout.zero == 2 ? "never" : "always",
         layout.zero == 2 ? "parameters stay gathered until the backward pass" : "");
  w.set(prefix + ".tensor_parallel_size", layout.tp);
  w.set(prefix + ".context_parallel_size", layout.cp);
  w.set(prefix + ".pipeline_parallel_size", 1, "verl's engine has no stages");
  w.set(prefix + ".expert_parallel_size", layout.ep);
  // "Sequence length must be divisible by the product of TP degree and 2 * CP degree" (torchtitan).
  const std::int64_t longest = longest_sequence(w.work);
  w.set(prefix + ".max_seq_len", (longest + layout.tp - 1) / layout.tp * layout.tp,
        "of the cache of rotations");
  w.set(prefix + ".param_offload", role.offload.parameters);
  if (role.role == Role::reference) return;
  w.set(prefix + ".optimizer_offload", role.offload.optimizer);
  w.text(prefix + ".activation_checkpoint", role.recompute == Recompute::full        ? "full"
                                            : role.recompute == Recompute::selective ? "selective"
                                                                                     : "none");
}

}  // namespace tessera
