torchrun pretrain_gpt.py --num-layers 4 --swiglu
