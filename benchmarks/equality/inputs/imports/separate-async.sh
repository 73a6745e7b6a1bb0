python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.model.path=qwen2.5-7b \
    algorithm.adv_estimator=grpo \
    trainer.v1.trainer_mode=separate_async \
    actor_rollout_ref.hybrid_engine=False \
    actor_rollout_ref.rollout.nnodes=1 \
    actor_rollout_ref.rollout.n_gpus_per_node=4
