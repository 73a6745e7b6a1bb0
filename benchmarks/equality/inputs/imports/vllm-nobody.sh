vllm serve nobody
