python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.model.path=qwen2.5-7b \
    algorithm.adv_estimator=grpo \
    trainer.v1.trainer_mode=separate_async \
    trainer.v1.separate_async.hybrid_rollout.enable_switch=True
