#!/usr/bin/env python3
"""Do plans for verl's FSDP engine hold by the bytes that autograd keeps?

usage: benchmarks/verl_memory.py PATH/TO/tessera [--models NAME ...] [--clusters NAME ...]
           [--workload grpo-7b-1k] [-o FILE]

Plans every preset model on every cluster named, and judges each plan by a count of its own: what
transformers' layers of that very shape save for the backward pass, by saved_tensors_hooks on fake
tensors (tests/cost_models/activation_oracle.py), times layers and tokens, with the logits, beside
what the plan says is resident. A plan holds where that is below the memory that plans may use.
Needs torch and transformers; no GPU. One line of JSON a plan, and a summary; exit status 1 when a
plan does not hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cost_models"))
import activation_oracle as oracle  # noqa: E402

CLUSTERS = ("h800-8", "h100-64", "h200-8")
TRAINED = ("update_actor", "update_critic")


def layer_bytes(config, sparse):
    """Bytes a token of one layer, and of everything else but the logits."""
    def total(layers, tokens):
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:1] * layers
        for key, dense in (("first_k_dense_replace", 0 if sparse else layers),
                           ("mlp_only_layers", [] if sparse else list(range(layers)))):
            if hasattr(config, key):
                setattr(config, key, dense)
        return oracle.saved(config, tokens, False, True)

    one, two = ([total(layers, tokens) for tokens in (256, 512)] for layers in (1, 2))
    layer = (two[1] - two[0] - one[1] + one[0]) / 256
    return layer, (one[1] - one[0]) / 256 - layer - 2 * config.vocab_size


class Counts:
    def __init__(self):
        self.known = {}

    def of(self, name, sparse):
        import transformers
        key = (name, sparse)
        if key not in self.known:
            config = transformers.AutoConfig.from_pretrained(ROOT / "configs/models" / name)
            if hasattr(config, "text_config"):  # Qwen2.5-VL's layers for text are Qwen2's
                text = config.text_config
                config = transformers.Qwen2Config(**{key: getattr(text, key) for key in (
                    "hidden_size", "intermediate_size", "num_attention_heads",
                    "num_key_value_heads", "vocab_size")})
            config.bos_token_id = config.eos_token_id = config.pad_token_id = None
            self.known[key] = layer_bytes(config, sparse)
        return self.known[key]


def judge(plan, name, counts):
    """The largest share of usable memory that a trained role's update needs on one rank."""
    worst = dict(used=0.0)
    spec = plan["models"]["actor"]["spec"]
    layers = spec["layers"]
    moe = spec.get("moe")
    for role in plan["roles"]:
        for phase in TRAINED:
            tokens = role["batching"]["tokens_per_call"]["update"]
            if not tokens or phase not in role["memory"] or not phase.endswith(role["role"]):
                continue
            memory, layout = role["memory"][phase], role["layout"]
            replicas = layout["dp_replicate"] * layout["dp_shard"]
            longest = (plan["workload"]["prompt_tokens"] +
                       plan["workload"]["response_tokens"]["max"])
            present = -(-role["batching"]["mini_batch"] // replicas) * longest
            tokens = max(longest, min(tokens, present)) / layout["cp"]
            dense = len(moe["dense_layers"]) if moe else layers
            kinds = {sparse: counts.of(name, sparse)
                     for sparse, count in ((False, dense), (True, layers - dense)) if count}
            end = next(iter(kinds.values()))[1]
            need = sum(memory[k] for k in ("weights", "master_weights", "optimizer", "reserve"))
            logits = 2 * spec["vocab"] * tokens if role["role"] == "actor" else 0
            if role["recompute"] == "full":  # logits are gone when a layer is made again
                inputs = 2 * spec["hidden"] * layers
                largest = max(layer for layer, _ in kinds.values())
                need += max(tokens * (inputs + largest), tokens * (inputs + end) + logits)
            else:
                kept = sum(layer * (layers - dense if sparse else dense)
                           for sparse, (layer, _) in kinds.items())
                need += tokens * (kept + end) + logits
            # What other roles of the rank hold meanwhile.
            others = max((sum(other["memory"].get(phase, {}).values()) for other in plan["roles"]
                          if other is not role and set(other["ranks"]) & set(role["ranks"])),
                         default=0)
            usable = plan["cluster"]["memory_gib"] * 2**30
            if (need + others) / usable > worst["used"]:
                worst = dict(used=(need + others) / usable, role=role["role"], tokens=tokens,
                             recompute=role["recompute"],
                             stated=(sum(memory.values()) + others) / usable)
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+",
                        default=sorted(p.name for p in (ROOT / "configs/models").iterdir()))
    parser.add_argument("--clusters", nargs="+", default=CLUSTERS)
    parser.add_argument("--workload", default="grpo-7b-1k")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    oracle.ALL_ATTENTION_FUNCTIONS["flash_attention_2"] = oracle.flash_attention
    oracle.torch.cuda.get_device_capability = lambda *_: (9, 0)
    counts, lines, short = Counts(), [], 0
    for cluster in args.clusters:
        for name in args.models:
            run = subprocess.run([args.program, "plan", "--model", name, "--cluster", cluster,
                                  "--workload", args.workload, "--engine", "verl", "--json"],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                continue
            plan = json.loads(run.stdout)
            verdict = judge(plan, name, counts)
            holds = verdict["used"] <= 1
            short += not holds
            lines.append(json.dumps(dict(model=name, cluster=cluster, holds=holds,
                                         step_s=plan["prediction"]["step_s"], **verdict)))
            print(lines[-1], flush=True)
    print(f"{short} of {len(lines)} plans exceed the card by the counted bytes")
    if args.output:
        pathlib.Path(args.output).write_text("\n".join(lines) + "\n")
    sys.exit(short > 0)


if __name__ == "__main__":
    main()
