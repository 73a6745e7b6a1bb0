#!/usr/bin/env python3
"""Low-rank adapters on GPUs: GRPO of random weights and prompts of digits, with adapters and with all
weights trained, in several layouts; what generation drew is scored anew by peft with the adapters that
the run exported after the step before, in fp32 and in bf16.

usage: benchmarks/adapters_gpu.py --tessera COMMAND [--model NAME] [--ranks 1] [--steps 4] [--response 256] -o FILE

`ours` and `peft_bf16` are distances of log-probs from peft's in fp32: the rollout's (bf16, CUDA graphs) and
those of peft's own forward pass in bf16; `without_adapters` is how far the model alone is from the rollout.
"""
import argparse, json, os, pathlib, shutil, subprocess, tempfile

LAYOUTS = {
    1: {"one GPU": ["actor.gpus=1"]},
    2: {"FSDP2 -> TP2": ["actor.dp=2", "actor.zero=3", "rollout.tp=2"],
        "TP2 -> 2 x TP1": ["actor.tp=2", "rollout.tp=1"]},
}
RANK, ALPHA = 32, 64
TIMES = ("timing_s/gen", "timing_s/reshard", "timing_s/old_log_prob", "timing_s/ref", "timing_s/update_actor",
         "timing_s/step", "reshard/bytes", "training/rollout_probs_diff_mean", "training/rollout_probs_diff_max",
         "actor/grad_norm", "perf/max_memory_allocated_gb")


def numbers(run):
    steps = []
    for line in open(os.path.join(run, "metrics.jsonl")):
        row = json.loads(line)
        steps.append({"step": row["step"], **{key: row["data"][key] for key in TIMES if key in row["data"]}})
    return steps


def scored(model_folder, run, step, most):
    """Distances of one step's samples, which were drawn with the adapters of the step before."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM
    device = "cuda" if torch.cuda.is_available() else "cpu"
    samples = [json.loads(line) for line in open(os.path.join(run, "samples.jsonl"))]
    samples = [s for s in samples if s["step"] == step][:most]
    adapters = os.path.join(run, "hf_steps", f"global_step_{step - 1}")

    def log_probs(model, sample):
        ids = torch.tensor([sample["prompt_ids"] + sample["response_ids"]], device=device)
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0].float()
        of = torch.tensor(sample["response_ids"], device=device)
        rows = logits.log_softmax(-1)[len(sample["prompt_ids"]) - 1:-1]
        return rows.gather(1, of.unsqueeze(1)).squeeze(1)

    values = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        base = AutoModelForCausalLM.from_pretrained(model_folder, dtype=dtype).to(device)
        model = PeftModel.from_pretrained(base, adapters).eval()
        values[name] = torch.cat([log_probs(model, s) for s in samples])
        if name == "fp32":
            with model.disable_adapter():
                values["without"] = torch.cat([log_probs(model, s) for s in samples])
        del base, model
        torch.cuda.empty_cache()
    ours = torch.tensor([x for s in samples for x in s["rollout_log_probs"]], device=device)
    far = lambda a, b: {"mean": float((a - b).abs().mean()), "max": float((a - b).abs().max())}
    return {"step": step, "tokens": ours.numel(), "ours": far(ours, values["fp32"]),
            "peft_bf16": far(values["bf16"], values["fp32"]), "without_adapters": far(ours, values["without"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", default="build/release/cli/tessera")
    parser.add_argument("--model", default="qwen2.5-0.5b")
    parser.add_argument("--cluster", default="h100-8")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--response", type=int, default=256)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="adapters-"))

    def tessera(*words):
        done = subprocess.run([*options.tessera.split(), *words], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
        return done.stdout

    tessera("make-data", "--task", "reverse", "--digits", "3", "--count", "4096", "-o", "prompts.jsonl")
    tessera("init-model", "--model", options.model, "--digits", "-o", "model")
    (folder / "workload.yaml").write_text(
        f"version: 1\nalgorithm: grpo\nprompts_per_step: {options.prompts}\nsamples_per_prompt: 8\nprompt_tokens: 8\n"
        f"response_tokens: {{mean: {options.response}, cv: 0, max: {options.response}}}\nmini_batches: 1\nepochs: 1\nkl: loss\n")
    result = {"what": __doc__.split("\n\n")[0], "model": options.model, "lora": {"rank": RANK, "alpha": ALPHA},
              "job": f"{options.prompts} prompts x 8 samples of {options.response} tokens, {options.ranks} GPUs",
              "command": f"benchmarks/adapters_gpu.py --model {options.model} --ranks {options.ranks}", "layouts": {}}
    for name, fixed in LAYOUTS[options.ranks].items():
        tessera("plan", "--model", "model", "--cluster", options.cluster, "--workload", "workload.yaml", "--fix",
                f"actor.gpus={options.ranks}", f"rollout.gpus={options.ranks}", "placement=colocated", *fixed, "-o", "plan.json")
        made = result["layouts"][name] = {}
        for kind, keys in (("adapters", [f"actor_rollout_ref.model.lora_rank={RANK}",
                                         f"actor_rollout_ref.model.lora_alpha={ALPHA}", "trainer.hf_save_freq=1"]),
                           ("all_weights", [])):
            run = folder / kind
            shutil.rmtree(run, ignore_errors=True)
            settings = ["data.train_files=[prompts.jsonl]", f"trainer.total_training_steps={options.steps}",
                        "actor_rollout_ref.rollout.verify_weights=1",
                        "actor_rollout_ref.actor.optim.lr=" + ("1e-3" if kind == "adapters" else "1e-6"), *keys]
            tessera("run", "plan.json", "--config", "grpo-digits",
                    *[word for setting in settings for word in ("--set", setting)], "-o", kind)
            made[kind] = numbers(run)
            print(name, kind, json.dumps(made[kind][-1]), flush=True)
            if kind == "adapters":
                made["scored"] = scored(folder / "model", run, options.steps, 64)
                print(name, json.dumps(made["scored"]), flush=True)
    json.dump(result, open(options.output, "w"), indent=1)
    shutil.rmtree(folder)


main()
