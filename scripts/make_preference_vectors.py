#!/usr/bin/env python3
"""Writes tests/executor/preference/transformers: what transformers and torch make of a tiny reward model's loss by
preferences, as TRL's RewardTrainer computes it (trl/trainer/reward_trainer.py, compute_loss): the mean over pairs of
-log sigmoid(chosen - rejected - margin), and center_rewards_coefficient times the mean of (chosen + rejected)^2.

The folder holds the model (AutoModelForSequenceClassification with one label, fp32), steps.json (the pairs of tokens;
scores, loss, accuracy, margin and norm of each step), gradients (of the first step) and trained (the weights after two
steps of torch's AdamW). Written with transformers 5.17.0 and torch 2.11.0.

    python scripts/make_preference_vectors.py
"""
import json
import pathlib
import random

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "executor" / "preference" / "transformers"
SEED, PAIRS, STEPS, CENTER, LR, EPS, DECAY = 20260102, 6, 2, 0.03, 0.01, 1e-3, 0.1


def make_model():
    torch.manual_seed(SEED)
    config = transformers.Qwen2Config(
        hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=31, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, initializer_range=0.3, num_labels=1,
        dtype="float32")
    model = transformers.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def make_pairs():
    draw = random.Random(SEED)

    def tokens(least, most):
        return [draw.randrange(3, 31) for _ in range(draw.randint(least, most))]
    return [{"prompt": tokens(1, 6), "chosen": tokens(1, 7) + [2], "rejected": tokens(1, 7) + [2],
             "margin": draw.choice([0.0, 0.0, 0.5, 1.25])} for _ in range(PAIRS)]


def main():
    model, pairs = make_model(), make_pairs()
    model.save_pretrained(OUT / "model")
    # As transformers' own Trainer, nothing of one dimension decays.
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": DECAY},
              {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, eps=EPS)
    margins = torch.tensor([pair["margin"] for pair in pairs])
    steps = []
    for step in range(STEPS):
        optimizer.zero_grad()

        def scores(which):
            return torch.cat([model(torch.tensor([pair["prompt"] + pair[which]]), use_cache=False).logits[0]
                              for pair in pairs])
        chosen, rejected = scores("chosen"), scores("rejected")
        loss = -F.logsigmoid(chosen - rejected - margins).mean() + CENTER * torch.mean((chosen + rejected) ** 2)
        loss.backward()
        if step == 0:
            (OUT / "gradients").mkdir(parents=True, exist_ok=True)
            save_file({name: p.grad.contiguous() for name, p in model.named_parameters()},
                      OUT / "gradients" / "model.safetensors")
        norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters()))
        steps.append({"chosen": chosen.tolist(), "rejected": rejected.tolist(), "loss": loss.item(),
                      "accuracy": (chosen > rejected).float().mean().item(),
                      "margin": (chosen - rejected).mean().item(), "grad_norm": norm.item()})
        optimizer.step()
    (OUT / "trained").mkdir(parents=True, exist_ok=True)
    save_file({name: p.detach().contiguous() for name, p in model.named_parameters()},
              OUT / "trained" / "model.safetensors")
    values = {"lr": LR, "eps": EPS, "weight_decay": DECAY, "center_coefficient": CENTER, "pairs": pairs, "steps": steps}
    (OUT / "steps.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
