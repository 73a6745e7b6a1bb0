"""Runs of a few steps on four CPU ranks, as scripts/quickstart.sh starts them: the digits task from
a random tiny model. A change of the code that leaves the arithmetic alone leaves their bits alone.
"""

import pathlib

from recording import Request

INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
STEPS = 6

QUICKSTART = "actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2"

# A name; the workload; what of the plan is fixed; options of `run`. How weights travel is named, as
# else it is measured.
RUNS = (
    ("quickstart", "grpo-digits", QUICKSTART, ""),
    ("quickstart-full", "grpo-digits", QUICKSTART, "--reshard full"),
    ("messages", "grpo-digits", QUICKSTART, "--reshard-transport send_recv --reshard-verify"),
    ("gathers", "grpo-digits-kl", "actor.tp=4 rollout.tp=1 rollout.dp=4",
     "--reshard-transport all_gather"),
    ("incremental", "grpo-digits-kl", QUICKSTART, "--reshard-incremental"),
    ("overlap", "grpo-digits-kl", QUICKSTART, "--reshard-overlap"),
    ("wire", "grpo-digits-kl", "actor.dp=4 actor.zero=1 rollout.tp=2",
     "--reshard-wire bf16 --reshard-storage unmap"),
    ("sharded", "grpo-digits-kl", "actor.dp=4 actor.zero=3 rollout.tp=2 rollout.dp=2", ""),
    ("gradients-sharded", "grpo-digits-kl", "actor.dp=2 actor.tp=2 actor.zero=2 rollout.tp=1", ""),
    ("ring", "grpo-digits-kl", "actor.cp=2 actor.context=ring actor.tp=2 rollout.dp=4", ""),
    ("ulysses", "grpo-digits-kl", "actor.cp=2 actor.context=ulysses rollout.dp=4", ""),
    ("interleaved", "grpo-digits-kl", "actor.pp=2 actor.vpp=2 actor.recompute=full rollout.dp=4",
     ""),
    ("offloaded", "grpo-digits-kl", "actor.tp=2 actor.offload=all actor.recompute=selective "
     "rollout.offload=all reference.offload=all", ""),
    ("apart", "grpo-digits-kl", "placement=actor+reference|rollout actor.gpus=2 rollout.gpus=2",
     ""),
    ("ppo", "ppo-digits", "actor.tp=2 actor.pp=2 critic.tp=2 rollout.tp=2", ""),
    ("ppo-apart", "ppo-digits-kl", "placement=actor+reference|critic actor.gpus=2 critic.gpus=2",
     ""),
    ("ppo-sharded", "ppo-digits-kl", "actor.zero=3 actor.dp=4 critic.zero=3 critic.dp=4",
     "--set algorithm.gamma=0.9 algorithm.lam=0.95 critic.cliprange_value=0.2"),
    ("gspo", "grpo-digits-kl", QUICKSTART,
     "--set actor_rollout_ref.actor.policy_loss.loss_mode=gspo "
     "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean"),
    ("cispo", "grpo-digits-kl", QUICKSTART,
     "--set actor_rollout_ref.actor.policy_loss.loss_mode=cispo "
     "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum "
     "actor_rollout_ref.rollout.top_p=0.9 actor_rollout_ref.rollout.top_k=8"),
    ("wrong-key", "grpo-digits-kl", QUICKSTART, "--set trainer.total_steps=3"),
)


# Interleaved stages need more layers than the preset has.
MODEL_OF = {"interleaved": "model-4-layers"}


def place_of(workload):
    file = INPUTS / f"{workload}.yaml"
    return str(file) if file.is_file() else workload


def run_of(name, workload, options):
    """The run of plan-NAME; of what it leaves behind, what no clock was near."""
    words = options.split()
    if "--reshard-transport" not in words:
        words += ["--reshard-transport", "host"]
    if "--set" not in words:
        words.append("--set")
    at = words.index("--set") + 1
    words[at:at] = ["data.train_files=[../data/prompts.jsonl]",
                    f"trainer.total_training_steps={STEPS}"]
    config = "ppo-digits" if workload.startswith("ppo") else "grpo-digits"
    return Request(f"run-{name}", ("run", f"../plan-{name}/plan.json", "--config", config,
                                   "--ranks", "4", "-o", "run", *words), output="wrong" in name,
                   compared=("run/metrics.jsonl", "run/samples.jsonl", "run/plan.json",
                             "run/run.yaml", "run/hf/*"))


def requests():
    four = str(INPUTS / "digits-4-layers")
    made = [Request("model", ("init-model", "--model", "tiny-qwen2-digits", "--digits", "--seed",
                              "1", "-o", "model")),
            Request("model-4-layers", ("init-model", "--model", four, "--digits", "--seed", "1",
                                       "-o", "model")),
            Request("data", ("make-data", "--task", "reverse", "--digits", "3", "--count", "1024",
                             "--seed", "1", "-o", "prompts.jsonl"))]
    for name, workload, fixed, options in RUNS:
        made += [Request(f"plan-{name}", 
                         ("plan", "--model", f"../{MODEL_OF.get(name, 'model')}/model", "--cluster",
                          "local-cpu", "--workload", place_of(workload), "--fix", *fixed.split(),
                          "-o", "plan.json")),
                 run_of(name, workload, options)]
    return made
