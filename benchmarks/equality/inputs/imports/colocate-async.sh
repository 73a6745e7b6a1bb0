python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.model.path=qwen2.5-7b \
    algorithm.adv_estimator=grpo \
    trainer.v1.trainer_mode=colocate_async
