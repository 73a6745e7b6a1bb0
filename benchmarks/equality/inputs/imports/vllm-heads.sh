vllm serve qwen2.5-7b --tensor-parallel-size 3
