#!/usr/bin/env bash
set -x
NGPUS=${NGPUS:-8}
MODEL_PATH=${MODEL_PATH:-"Qwen/Qwen2.5-7B-Instruct"}
max_prompt=1024; max_response=$((1024 * 2))
limit=$(( (max_prompt + max_response) * 4 ))
DATA=(
    data.train_files=$HOME/data/train.parquet   # only a run knows HOME
    data.train_batch_size=1024
    data.max_prompt_length=${max_prompt}
    data.max_response_length="${max_response}"
)
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    "${DATA[@]}" \
    actor_rollout_ref.model.path="$MODEL_PATH" \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$limit \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.fsdp_config.param_offload=False \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 \
    trainer.logger='["console","wandb"]' \
    trainer.n_gpus_per_node=$NGPUS trainer.nnodes=2 $@ 2>&1 | tee log.txt
