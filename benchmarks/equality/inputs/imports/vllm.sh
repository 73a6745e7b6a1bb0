vllm serve Qwen/Qwen2.5-7B --tensor-parallel-size 4 --max-num-seqs 64
