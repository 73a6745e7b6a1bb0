// A run.yaml without a fault, for tests that change a key of it.
#pragma once

namespace tessera {

inline constexpr char kGoodRun[] =
    "version: 1\n"
    "data:\n"
    "  train_files: [a.jsonl]\n"
    "  train_batch_size: 32\n"
    "algorithm:\n"
    "  lam: 0.95\n"
    "  kl_ctrl: {type: adaptive, kl_coef: 0.01}\n"
    "actor_rollout_ref:\n"
    "  actor:\n"
    "    optim: {lr: 1e-3, betas: [0.9, 0.95], lr_scheduler_type: cosine}\n"
    "    clip_ratio_high: 0.28\n"
    "    loss_agg_mode: token-mean\n"
    "  rollout:\n"
    "    top_p: 0.9\n"
    "critic:\n"
    "  cliprange_value: 0.4\n"
    "trainer:\n"
    "  total_training_steps: 20\n"
    "  seed: 7\n";

}  // namespace tessera
