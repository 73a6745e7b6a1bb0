python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2 --of-another-program 1 --quantization fp8 --host 0.0.0.0 --port 30000
