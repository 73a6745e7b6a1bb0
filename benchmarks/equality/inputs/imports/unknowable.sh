python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.model.path=qwen2.5-7b \
    trainer.nnodes=$(wc -l < hosts)
