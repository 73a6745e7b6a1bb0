torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 \
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm \
    --untie-embeddings-and-output-weights --disable-bias-linear --position-embedding-type rope \
    --seq-length 4096 --max-position-embeddings 8192 --vocab-size 128256 \
    --micro-batch-size 1 --global-batch-size 256 --bf16 \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel \
    --use-distributed-optimizer --recompute-activations
