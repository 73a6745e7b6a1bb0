vllm serve Qwen/Qwen3-30B-A3B --tensor-parallel-size 2 --data-parallel-size 4 --enable-expert-parallel --max-model-len 16384
