python3 -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 --max-running-requests 256
