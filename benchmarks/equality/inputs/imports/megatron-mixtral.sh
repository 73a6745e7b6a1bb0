torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \
    --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16 \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --sequence-parallel \
    --num-layers-per-virtual-pipeline-stage 2 --expert-model-parallel-size 4 \
    --use-distributed-optimizer --recompute-granularity full --recompute-method uniform \
    --recompute-num-layers 1
