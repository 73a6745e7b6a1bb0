// verl 0.9.1 with its Megatron trainer (workers/engine/megatron), adapters by Megatron-Bridge.
#include "planner/engines/rows.h"

namespace tessera {

Engine verl_megatron_engine() {
  Engine engine = megatron_core("verl-megatron", "0.9.1");
  add_verl_loop(engine);
  engine.capabilities.params = {DType::bf16, DType::fp16};
  engine.capabilities.families = verl_megatron_families();
  // The first engine of a process initializes mpu, later ones return where that has been done
  // (workers/engine/megatron/transformer_impl.py, _init_device_mesh).
  engine.capabilities.pools.one_set_of_groups = true;
  engine.traits.adapters.fused = true;  // linear_qkv, linear_fc1
  // Gradients are reduced after the last backward pass and parameters gathered after the step
  // unless override_ddp_config says otherwise (utils/megatron_utils.py).
  engine.traits.gradients.overlapped = false;
  engine.traits.gradients.overlapped_replicas = false;
  engine.traits.optimizer.overlapped_parameters = false;
  // Megatron-Bridge gathers and converts experts one by one: with NeMo RL, which exports by it,
  // too, transfer and update of Qwen3-30B-A3B (18,867 tensors) take 9.7 s, of Qwen3-235B-A22B
  // (36,568) 18.4 s (NVIDIA-NeMo/RL#3294).
  engine.traits.handover.tensor = Seconds{0.5e-3};
  return engine;
}

}  // namespace tessera
