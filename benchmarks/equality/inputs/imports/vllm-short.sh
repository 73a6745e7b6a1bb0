vllm serve qwen2.5-7b -tp 4 --max-num-seqs=64 --max-model-len 4096 --dtype bfloat16 --gpu-memory-utilization 0.5
