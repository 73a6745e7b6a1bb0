vllm serve Qwen/Qwen2.5-7B --tensor-parallel-sise 8
