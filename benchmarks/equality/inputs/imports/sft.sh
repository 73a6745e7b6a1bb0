torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer \
    data.train_files=a
