"""Oracle of adapters_test.cc and adapters_run_test.cc: peft 0.18 on the CPU.

train DIR               for each DIR/NAME that has a model/ and an ours/ (adapters that Tessera has
                        written): peft reads both, and DIR/NAME gets
                        peft/               the adapters as peft writes them, with a B drawn here
                        expected.safetensors  log-probs of the responses of tokens.json with the
                                            adapters (log_prob), without (reference), and after a
                                            step (after); gradients of sum(slope * log-prob), clipped
                                            (grad/NAME), their norm; adapters after one AdamW step
                                            (stepped/NAME)
score MODEL ADAPTERS SAMPLES  log-probs of the responses of a samples.jsonl are those of the model
                        with the adapters; exit status 1 unless they are
"""
import json
import math
import pathlib
import sys

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM


def loaded(model, adapters, trainable=False):
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    return PeftModel.from_pretrained(base, adapters, is_trainable=trainable).eval()


def log_probs(model, prompt, response):
    ids = torch.tensor([prompt + response])
    logits = model(input_ids=ids).logits[0].float()
    scores = logits.log_softmax(-1)[len(prompt) - 1:-1]
    return scores.gather(1, torch.tensor(response).unsqueeze(1)).squeeze(1)


def all_log_probs(model, tokens):
    return torch.cat([log_probs(model, each["prompt"], each["response"]) for each in tokens])


def slopes(tokens):
    return torch.tensor([math.sin(1.0 + 3.7 * s + 1.3 * t)
                         for s, each in enumerate(tokens) for t in range(len(each["response"]))])


def saved_name(name):
    return name.replace(".default.weight", ".weight")


def train(folder):
    tokens = json.loads((folder / "tokens.json").read_text())
    model = loaded(folder / "model", folder / "ours", trainable=True)
    ours = load_file(folder / "ours/adapter_model.safetensors")
    adapters = {n: p for n, p in model.named_parameters() if p.requires_grad}
    assert {saved_name(n) for n in adapters} == set(ours)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in adapters.items():
        assert torch.equal(parameter, ours[saved_name(name)]), name
        if "lora_A" in name:  # as peft draws it
            bound = 1 / math.sqrt(parameter.shape[1])
            assert parameter.abs().max() <= bound and parameter.abs().max() > 0.8 * bound, name
            continue
        assert not parameter.any(), name
        with torch.no_grad():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(folder / "peft")
    out = {"log_prob": all_log_probs(model, tokens)}
    with torch.no_grad(), model.disable_adapter():
        out["reference"] = all_log_probs(model, tokens)
    (out["log_prob"] * slopes(tokens)).sum().backward()
    out["log_prob"] = out["log_prob"].detach()
    optimizer = torch.optim.AdamW(adapters.values(), lr=1e-2, eps=1e-4, weight_decay=0.01)
    out["norm"] = torch.nn.utils.clip_grad_norm_(adapters.values(), 0.5).reshape(1)
    for name, parameter in adapters.items():
        out["grad/" + saved_name(name)] = parameter.grad.clone()
    optimizer.step()
    for name, parameter in adapters.items():
        out["stepped/" + saved_name(name)] = parameter.detach().clone()
    with torch.no_grad():
        out["after"] = all_log_probs(model, tokens)
    save_file({name: tensor.contiguous() for name, tensor in out.items()},
              folder / "expected.safetensors")


def score(model, adapters, samples):
    model = loaded(model, adapters)
    worst = other = 0.0
    with torch.no_grad():
        for line in pathlib.Path(samples).read_text().splitlines():
            sample = json.loads(line)
            given = torch.tensor(sample["rollout_log_probs"])
            of = sample["prompt_ids"], sample["response_ids"]
            worst = max(worst, float((log_probs(model, *of) - given).abs().max()))
            with model.disable_adapter():
                other = max(other, float((log_probs(model, *of) - given).abs().max()))
    print(f"largest difference {worst:.2e}, without the adapters {other:.2e}")
    return worst < 1e-4 < other


if sys.argv[1] == "score":
    sys.exit(0 if score(*sys.argv[2:]) else 1)
for each in sorted(pathlib.Path(sys.argv[2]).iterdir()):
    train(each)
