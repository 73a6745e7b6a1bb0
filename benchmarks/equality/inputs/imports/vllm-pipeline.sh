vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4 --pipeline-parallel-size 2 --max-model-len 8192
