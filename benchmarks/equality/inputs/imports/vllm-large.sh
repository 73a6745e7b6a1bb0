vllm serve Qwen/Qwen2.5-32B --max-model-len 65536
