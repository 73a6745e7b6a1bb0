python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-Coder-7B-Instruct \
    trainer.nnodes=$SLURM_JOB_NUM_NODES \
    algorithm.adv_estimator=grpo
