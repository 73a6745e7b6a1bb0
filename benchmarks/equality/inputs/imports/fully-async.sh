python3 -m verl.experimental.fully_async_policy.fully_async_main \
    actor_rollout_ref.model.path=qwen2.5-7b \
    algorithm.adv_estimator=grpo \
    trainer.nnodes=1 \
    trainer.n_gpus_per_node=6 \
    rollout.nnodes=1 \
    rollout.n_gpus_per_node=2 \
    actor_rollout_ref.actor.ppo_mini_batch_size=96 \
    data.train_batch_size=0 \
    async_training.require_batches=2 \
    async_training.trigger_parameter_sync_step=8
