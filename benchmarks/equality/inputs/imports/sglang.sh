python3 -m sglang.launch_server --model-path qwen2.5-7b --tp 2 --dp 2 --mem-fraction-static 0.8
