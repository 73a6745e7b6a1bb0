"""The requests that need no executor: plans, and what is asked of those plans (simulations,
explanations, exports, imports); imports of files that people write; sweeps; refusals.

All are fixed: the random ones come from a seed.
"""

import json
import pathlib
import random
import sys

from recording import TREE, Request

sys.path.insert(0, str(TREE / "benchmarks"))
import sweep_rows  # noqa: E402

INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
SEED = 2026

ENGINES = ("tessera", "verl", "verl-megatron", "megatron", "vllm", "sglang", "any")
TARGETS = ("verl", "verl-megatron", "ray", "megatron", "vllm", "sglang", "torchrun", "slurm",
           "kubernetes")
OBJECTIVES = ("step_s", "tokens_per_s_per_gpu", "cost", "gpus")

# Every preset of configs/models, with a cluster and a workload that suit it.
MODELS = {
    "tiny-qwen2-digits": ("local-cpu", "grpo-digits"),
    "gpt2": ("l40s-8", "grpo-short"),
    "qwen2.5-0.5b": ("l40s-8", "grpo-7b-1k"),
    "qwen2.5-1.5b": ("a100-8", "ppo-7b-1k"),
    "qwen2.5-3b": ("a100-pcie-8", "grpo-7b-1k"),
    "qwen2.5-7b": ("h100-8", "ppo-7b-1k"),
    "qwen2.5-14b": ("h200-8", "grpo-7b-1k"),
    "qwen2.5-32b": ("h20-64", "grpo-7b-1k"),
    "qwen2.5-72b": ("h100-64", "grpo-7b-1k"),
    "qwen2.5-vl-3b": ("h800-8", "grpo-reward-vl"),
    "qwen2.5-vl-7b": ("h800-16", "grpo-reward-vl"),
    "qwen2-7b": ("h20-8", "grpo-7b-1k"),
    "qwen3-0.6b": ("l40s-8", "grpo-short"),
    "qwen3-1.7b": ("a100-8", "grpo-7b-1k"),
    "qwen3-4b": ("h100-8", "ppo-7b-1k"),
    "qwen3-8b": ("h800-8", "grpo-7b-1k"),
    "qwen3-14b": ("b200-8", "grpo-7b-1k"),
    "qwen3-32b": ("h200-64", "grpo-7b-1k"),
    "llama3.2-1b": ("l40s-8", "ppo-7b-1k"),
    "llama3.2-3b": ("a100-8", "grpo-7b-1k"),
    "llama3.1-8b": ("h100-8", "grpo-7b-1k"),
    "llama3.1-70b": ("h100-64", "ppo-7b-1k"),
    "llama3.1-405b": ("dgx-h100", "grpo-7b-1k"),
    "llama2-7b": ("a100-8", "grpo-7b-1k"),
    "llama2-70b": ("a100-64", "grpo-7b-1k"),
    "deepseek-llm-7b": ("h800-8", "grpo-7b-1k"),
    "mistral-7b": ("h100-8", "grpo-7b-1k"),
    "mistral-nemo": ("h200-8", "grpo-7b-1k"),
    "minitron-8b": ("h100-8", "grpo-7b-1k"),
    "nemotron-4-340b": ("b200-64", "grpo-7b-1k"),
    "mixtral-8x7b": ("h200-8", "grpo-7b-1k"),
    "mixtral-8x22b": ("h100-64", "grpo-7b-1k"),
    "qwen1.5-moe-a2.7b": ("h100-8", "grpo-7b-1k"),
    "qwen2-57b-a14b": ("h200-8", "grpo-7b-1k"),
    "qwen3-30b-a3b": ("h200-8", "grpo-7b-1k"),
    "qwen3-235b-a22b": ("h200-64", "grpo-7b-1k"),
    "deepseek-v2-lite": ("h100-8", "grpo-7b-1k"),
    "deepseek-v2": ("h200-64", "grpo-7b-1k"),
    "deepseek-v3": ("h20-96", "grpo-reasoning-671b"),
    "moonlight-16b-a3b": ("h800-8", "grpo-7b-1k"),
    "gpt-oss-20b": ("h100-8", "grpo-7b-1k"),
    "gpt-oss-120b": ("h200-8", "grpo-7b-1k"),
}

# One small model of every family: these are planned for every engine.
FAMILIES = ("tiny-qwen2-digits", "gpt2", "qwen2.5-7b", "qwen3-4b", "llama3.1-8b", "mistral-7b",
            "minitron-8b", "qwen2.5-vl-3b", "mixtral-8x7b", "qwen1.5-moe-a2.7b", "qwen3-30b-a3b",
            "deepseek-v2-lite", "moonlight-16b-a3b", "gpt-oss-20b")

# Families that Tessera's own executor runs, and models whose whole space takes long.
OF_TESSERA = ("qwen2.5", "qwen2-7b", "qwen3-0", "qwen3-1", "qwen3-32", "qwen3-8", "llama",
              "deepseek-llm", "mistral-nemo")
LARGEST = ("llama3.1-405b", "nemotron-4-340b", "deepseek-v2", "deepseek-v3", "qwen3-235b-a22b")

CLUSTERS = ("a100-64", "a100-8", "a100-h100-64", "a100-pcie-8", "b200-64", "b200-8",
            "deepseek-h800-2048", "dgx-h100", "h100-64-roce-2to1", "h100-64", "h100-8",
            "h100-8192-roce-7to1", "h100-h20-128", "h20-64", "h20-8", "h20-96", "h200-64",
            "h200-8", "h800-16", "h800-64", "h800-8", "h800-h20-64", "l40s-64", "l40s-8",
            "meta-h100-24k", "selene-a100-korthikanti", "selene-a100", "verl-h20", "h100-6x2",
            "three-types")


def place_of(name):
    """A preset's name, or the file of this folder."""
    file = INPUTS / f"{name}.yaml"
    return str(file) if file.is_file() else name


def plan(name, model, cluster, workload, *words):
    """A request for a plan, written to plan.json."""
    return Request(f"plan-{name}", ("plan", "--model", model, "--cluster", place_of(cluster),
                                    "--workload", place_of(workload), *words, "-o", "plan.json"))


# --- Plans ----------------------------------------------------------------------------------------


def plans_of_models():
    """Every preset under the engines that know it; the largest under one."""
    for model, (cluster, workload) in MODELS.items():
        yield plan(f"model-{model}", model, cluster, workload, "--engine", "verl-megatron")
        if model not in LARGEST and model not in FAMILIES:
            yield plan(f"model-{model}-verl", model, cluster, workload, "--engine", "verl")
            yield plan(f"model-{model}-any", model, cluster, workload, "--engine", "any")
        if model.startswith(OF_TESSERA) and not (model in FAMILIES + LARGEST or "vl" in model):
            yield plan(f"model-{model}-tessera", model, cluster, workload, "--engine", "tessera")


def plans_of_families():
    """Every family under every engine."""
    for model in FAMILIES:
        for engine in ENGINES:
            cluster, workload = MODELS[model]
            yield plan(f"family-{model}-{engine}", model, cluster, workload, "--engine", engine)


def plans_of_clusters():
    """Every cluster, by an engine that is content with large ones."""
    for cluster in CLUSTERS:
        yield plan(f"cluster-{cluster}", "qwen2.5-7b", cluster, "grpo-7b-1k")
        if not cluster.endswith(("24k", "7to1", "2048")):
            yield plan(f"cluster-{cluster}-verl", "llama3.1-8b", cluster, "ppo-7b-1k", "--engine",
                       "verl")


def plans_of_workloads():
    """Every workload under several engines, on one node and on two."""
    for workload in ("grpo-7b-1k", "ppo-7b-1k", "grpo-short", "grpo-table", "ppo-models",
                     "dataflow", "grpo-reward-vl"):
        for engine in ("tessera", "verl", "verl-megatron", "any"):
            cluster = "h100-8" if engine == "any" else "h800-16"
            yield plan(f"workload-{workload}-{engine}", "qwen2.5-7b", cluster, workload,
                       "--engine", engine)
    for engine in ("tessera", "verl", "verl-megatron", "megatron", "any"):
        yield plan(f"workload-ppo-digits-{engine}", "tiny-qwen2-digits", "local-cpu",
                   "ppo-digits", "--engine", engine)


def plans_of_placements():
    """Placements of a PPO and of a GRPO job."""
    of_ppo = ("colocated", "standalone", "actor | critic", "actor+reference | critic",
              "actor | critic+reference", "actor | critic | reference", "actor+critic | reference",
              "actor+reference | critic | rollout", "actor+critic+reference | rollout")
    for number, placement in enumerate(of_ppo):
        for engine in ("tessera", "verl-megatron", "any"):
            yield plan(f"placement-ppo-{number}-{engine}", "qwen2.5-7b", "h100-8", "ppo-7b-1k",
                       "--engine", engine, "--fix", f"placement={placement}")
    of_models = ("colocated", "actor+reference | critic+reward",
                 "actor | critic | reference | reward", "actor+critic+reference | reward",
                 "actor+critic+reference | rollout | reward")
    for number, placement in enumerate(of_models):
        for engine in ("tessera", "verl"):
            yield plan(f"placement-models-{number}-{engine}", "qwen2.5-7b", "h100-64",
                       "ppo-models", "--engine", engine, "--fix", f"placement={placement}")
    for engine in ("tessera", "verl", "verl-megatron", "any"):
        yield plan(f"placement-rollout-{engine}", "qwen2.5-7b", "h100-8", "grpo-7b-1k",
                   "--engine", engine, "--fix", "placement=actor+reference | rollout",
                   "actor.gpus=4", "rollout.gpus=4")


def plans_of_objectives():
    for objective in OBJECTIVES:
        for engine in ("tessera", "verl", "any"):
            yield plan(f"objective-{objective}-{engine}", "qwen2.5-7b", "h100-8", "grpo-7b-1k",
                       "--engine", engine, "--objective", objective)
        yield plan(f"objective-{objective}-types", "qwen2.5-7b", "three-types", "grpo-7b-1k",
                   "--objective", objective)


def tables_of_plans():
    """Fronts over the number of GPUs, and variations."""
    fronts = (("qwen2.5-7b", "h100-8", "ppo-7b-1k", "tessera"),
              ("qwen2.5-7b", "h800-16", "grpo-7b-1k", "verl"),
              ("qwen3-30b-a3b", "h200-8", "grpo-7b-1k", "verl-megatron"),
              ("llama3.1-8b", "h100-6x2", "grpo-7b-1k", "tessera"),
              ("tiny-qwen2-digits", "local-cpu", "ppo-digits", "any"))
    for number, (model, cluster, workload, engine) in enumerate(fronts):
        for form in ((), ("--json",), ("--objective", "cost")):
            yield plan(f"pareto-{number}{'-'.join(('',) + form)}", model, cluster, workload,
                       "--engine", engine, "--pareto", *form)
    variations = (("tessera", "rollout.tp=1,2,4,8"), ("verl", "actor.zero=2,3", "rollout.tp=1,2"),
                  ("verl-megatron", "actor.tp=1,2,4", "actor.pp=1,2"),
                  ("any", "actor.offload=none,optimizer,all"))
    for engine, *varied in variations:
        for form in ((), ("--json",)):
            yield plan(f"vary-{engine}{''.join(form)}", "qwen2.5-7b", "h100-8", "grpo-7b-1k",
                       "--engine", engine, *form, "--vary", *varied)


def plans_of_settings():
    """Every field of a role that can be fixed, and GPU types."""
    fields = ("actor.gpus=4", "actor.tp=2", "actor.pp=2", "actor.dp=4", "actor.zero=1",
              "actor.zero=3", "actor.tokens=8192", "actor.update_tokens=4096", "actor.cp=2",
              "actor.cp=2 actor.context=ulysses", "actor.pp=2 actor.vpp=2", "actor.dp_shard=4",
              "actor.recompute=none", "actor.recompute=full", "actor.offload=optimizer",
              "actor.offload=all", "actor.tp=2 actor.sequence_parallel=0",
              "actor.pp=2 actor.head_layers=1", "rollout.tp=4", "rollout.pp=2", "rollout.dp=8",
              "rollout.max_sequences=64", "rollout.offload=none", "rollout.offload=all",
              "critic.tp=4", "critic.pp=2", "reference.zero=3", "reference.offload=all",
              "actor.tp=2 actor.pp=2 rollout.tp=2 critic.tp=2 critic.pp=2 reference.tp=2",
              "actor.tp=3", "actor.gpus=5")
    for number, words in enumerate(fields):
        engine = ("tessera", "any")[number % 2]
        yield plan(f"fix-{number:02}-{engine}", "qwen2.5-7b", "h100-8", "ppo-7b-1k", "--engine",
                   engine, "--fix", *words.split())
    of_experts = ("actor.ep=8", "actor.ep=4 actor.etp=1", "actor.ep=2 actor.etp=2 actor.tp=2",
                  "rollout.ep=8", "rollout.ep=1", "actor.ep=3")
    for number, words in enumerate(of_experts):
        yield plan(f"fix-experts-{number}", "qwen3-30b-a3b", "h200-8", "grpo-7b-1k", "--engine",
                   "verl-megatron", "--fix", *words.split())
    of_types = ("actor.gpu=H100-SXM-80GB", "actor.gpu=A100-SXM-80GB rollout.gpu=H20-96GB",
                "rollout.gpu=H20-96GB placement=actor+reference|rollout",
                "actor.gpu=A100-SXM-80GB+H100-SXM-80GB", "actor.gpu=B200")
    for number, words in enumerate(of_types):
        for engine in ("tessera", "verl"):
            yield plan(f"fix-types-{number}-{engine}", "qwen2.5-7b", "three-types", "grpo-7b-1k",
                       "--engine", engine, "--fix", *words.split())


def large_plans():
    """A handful that take seconds."""
    yield plan("large-8b-any", "llama3.1-8b", "h100-64", "grpo-7b-1k", "--engine", "any")
    yield plan("large-70b", "llama3.1-70b", "dgx-h100", "ppo-7b-1k")
    yield plan("large-70b-16k", "llama3.1-70b", "meta-h100-24k", "ppo-7b-1k")
    yield plan("large-70b-megatron", "llama3.1-70b", "dgx-h100", "ppo-7b-1k", "--engine",
               "verl-megatron")
    yield plan("large-experts", "qwen3-235b-a22b", "dgx-h100", "grpo-7b-1k", "--engine", "any")
    yield plan("large-v3-verl", "deepseek-v3", "deepseek-h800-2048", "grpo-reasoning-671b",
               "--engine", "verl-megatron")
    yield plan("large-types", "qwen2.5-32b", "h100-h20-128", "ppo-7b-1k")


def plans_of_other_options():
    yield plan("critic-model", "qwen2.5-7b", "h100-8", "ppo-7b-1k", "--critic", "qwen2.5-1.5b")
    yield plan("reward-model", "qwen2.5-7b", "h100-8", "ppo-models", "--reward", "qwen2.5-7b")
    yield plan("calibration", "qwen2.5-7b", "h100-8", "ppo-7b-1k", "--calibration", "h200")
    yield plan("calibration-of-types", "qwen2.5-7b", "h800-h20-64", "grpo-7b-1k",
               "--calibration", "h800")
    yield plan("json", "qwen2.5-7b", "h100-8", "ppo-7b-1k", "--json")
    yield plan("json-types", "qwen2.5-7b", "three-types", "grpo-7b-1k", "--json")


def refused_plans():
    """What has no plan or is not understood."""
    usual = ("qwen2.5-7b", "h100-8", "ppo-7b-1k")
    yield plan("none-memory", "llama3.1-405b", "l40s-8", "grpo-7b-1k")
    yield plan("none-memory-json", "llama3.1-70b", "a100-8", "ppo-7b-1k", "--json")
    for engine in ENGINES:
        yield plan(f"none-{engine}", "qwen2.5-32b", "l40s-8", "ppo-7b-1k", "--engine", engine)
    yield plan("none-positions", "gpt2", "h100-8", "grpo-7b-1k")
    unfit = ("actor.ep=2", "actor.tp=8 actor.pp=2", "actor.zero=3 actor.pp=2", "rollout.tp=3",
             "actor.gpus=16", "actor.vpp=2", "critic.cp=2", "actor.zero=1 actor.dp=1 actor.gpus=8")
    for number, words in enumerate(unfit):
        for form in ((), ("--json",)):
            yield plan(f"none-fix-{number}{''.join(form)}", *usual, *form, "--engine",
                       ("tessera", "verl", "verl-megatron")[number % 3], "--fix", *words.split())
    wrong = (("--fix", "actor.tq=2"), ("--fix", "actr.tp=2"), ("--fix", "actor.tp=x"),
             ("--fix", "actor.tp=2", "actor.tp=4"), ("--fix", "rollout.zero=3"),
             ("--fix", "actor.recompute=all"), ("--fix", "placement=actor | critc"),
             ("--fix", "placement=actor | actor"), ("--fix", "nothing"), ("--engine", "verll"),
             ("--objective", "time"), ("--vary", "rollout.tp=1,x"), ("--vary", "actor.tq=1,2"),
             ("--calibration", "h1000"), ("--pareto", "--vary", "rollout.tp=1,2"), ("--unknown",))
    for number, words in enumerate(wrong):
        yield plan(f"wrong-{number:02}", *usual, *words)
    yield plan("wrong-model", "qwen2.5-7c", "h100-8", "ppo-7b-1k")
    yield plan("wrong-cluster", "qwen2.5-7b", "h100-9", "ppo-7b-1k")
    yield plan("wrong-workload", "qwen2.5-7b", "h100-8", "ppo")
    yield plan("wrong-files", "nobody", "bad-cluster", "bad-workload", "--fix", "actor.x=1")


def random_plans(count):
    """Combinations that nobody chose, of models up to 32B on up to 64 GPUs."""
    draw = random.Random(SEED)
    small = [model for model, (cluster, workload) in MODELS.items()
             if cluster.endswith(("-8", "16")) and workload != "grpo-short"]
    clusters = ("a100-8", "h100-8", "h200-8", "h20-8", "h800-16", "b200-8", "h100-6x2",
                "three-types", "h100-64", "h20-64", "h100-64-roce-2to1")
    workloads = ("grpo-7b-1k", "ppo-7b-1k", "grpo-short", "ppo-models", "grpo-table")
    settings = ("actor.tp=2", "actor.tp=4", "actor.pp=2", "actor.recompute=full", "actor.zero=3",
                "actor.offload=all", "rollout.tp=2", "rollout.tp=4", "rollout.offload=all",
                "rollout.max_sequences=128", "actor.tokens=16384", "placement=colocated")
    for number in range(count):
        engine = draw.choice(("tessera", "verl", "verl-megatron", "megatron", "any"))
        words = ["--engine", engine, "--objective", draw.choice(OBJECTIVES)]
        if draw.random() < 0.7:
            words += ["--fix", *draw.sample(settings, draw.randint(1, 2))]
        model, cluster = draw.choice(small), draw.choice(clusters)
        if engine == "tessera" and not model.startswith(OF_TESSERA):
            model = "qwen2.5-7b"
        if engine == "any" and cluster.endswith(("-64", "to1")):
            cluster = "h100-8"  # the whole space of 64 GPUs takes many seconds
        yield plan(f"random-{number:03}-{engine}", model, cluster, draw.choice(workloads), *words)


def plans():
    return [*plans_of_models(), *plans_of_families(), *plans_of_clusters(), *plans_of_workloads(),
            *plans_of_placements(), *plans_of_objectives(), *tables_of_plans(),
            *plans_of_settings(), *large_plans(), *plans_of_other_options(), *refused_plans(),
            *random_plans(120)]


# --- What is asked of plans -----------------------------------------------------------------------


def simulations(name):
    file = f"../plan-{name}/plan.json"
    yield Request(f"simulate-{name}", ("simulate", file, "--trace", "trace.json",
                                       "--trace-events", "2000"))
    yield Request(f"simulate-{name}-json", ("simulate", file, "--json", "--steps", "3", "--seed",
                                            "7"))


def explanations(name):
    file = f"../plan-{name}/plan.json"
    for form in ((), ("--json",)):
        end = "".join(form)
        yield Request(f"explain-{name}{end}", ("explain", file, *form))
        yield Request(f"explain-{name}-why-not{end}",
                      ("explain", file, "--why-not", "rollout.tp=8", "--why-not",
                       "actor.tp=4 actor.pp=1", "--why-not", "placement=standalone", *form))
        yield Request(f"explain-{name}-advice{end}",
                      ("explain", file, "--advice", "--rules", "published-practice", *form))


def exports(name):
    """A plan's files for every target, and those files read back."""
    file = f"../plan-{name}/plan.json"
    for target in TARGETS:
        made = f"export-{name}-{target}"
        yield Request(made, ("export", file, "--to", target, "-o", "job"))
    read = {"verl": ("run.sh", "verl.yaml"), "verl-megatron": ("run.sh", "verl.yaml"),
            "megatron": ("actor.sh",), "vllm": ("serve.sh",), "sglang": ("serve.sh",)}
    for target, files in read.items():
        for each in files:
            yield Request(f"import-{name}-{target}-{each}",
                          ("import", f"../export-{name}-{target}/job/{each}", "--cluster",
                           "h100-64", "-o", "back.json"))


def more_exports(name):
    """Options of exports."""
    file = f"../plan-{name}/plan.json"
    options = (("verl", "--rollout", "sglang", "--json"), ("verl", "--rollout", "trt"),
               ("verl", "--model-path", "/models/q", "--train-files", "/data/a b.parquet",
                "--val-files", "/data/v.parquet", "--name", "it's a job"),
               ("kubernetes", "--image", "registry/tessera:1", "--config", "other.yaml", "--run",
                "/results"), ("slurm", "--name", "job"), ("verrl",))
    for number, words in enumerate(options):
        yield Request(f"export-{name}-options-{number}",
                      ("export", file, "--to", *words, "-o", "job"))


# Plans that are looked at from every side, by what the name of their request says.
LOOKED_AT = (
    "family-tiny-qwen2-digits-tessera", "family-qwen2.5-7b-tessera", "family-qwen2.5-7b-verl",
    "family-qwen2.5-7b-verl-megatron", "family-qwen2.5-7b-megatron", "family-qwen2.5-7b-vllm",
    "family-qwen2.5-7b-any", "family-llama3.1-8b-verl", "family-llama3.1-8b-any",
    "family-mixtral-8x7b-verl-megatron", "family-qwen3-30b-a3b-verl-megatron",
    "family-qwen3-30b-a3b-verl", "family-moonlight-16b-a3b-verl-megatron",
    "family-gpt-oss-20b-any", "family-qwen2.5-vl-3b-verl", "family-minitron-8b-megatron",
    "family-gpt2-any", "family-deepseek-v2-lite-any", "model-qwen2.5-72b", "model-llama3.1-70b",
    "model-deepseek-v3", "cluster-three-types", "cluster-h800-h20-64", "cluster-a100-h100-64-verl",
    "workload-ppo-models-verl", "workload-ppo-models-tessera", "workload-dataflow-tessera",
    "workload-grpo-table-verl-megatron", "workload-ppo-digits-tessera", "placement-rollout-tessera",
    "placement-rollout-verl", "placement-ppo-3-tessera", "fix-08-tessera", "fix-10-tessera",
    "objective-gpus-verl", "objective-cost-types")


def imports():
    """Files that people write: scripts, overrides, YAML; some wrong."""
    for file in sorted((INPUTS / "imports").iterdir()):
        for cluster in ("h100-8", "h800-64"):
            yield Request(f"import-{file.name}-{cluster}",
                          ("import", str(file), "--cluster", cluster, "-o", "plan.json"))
    special = (("needs-a-run.sh", "--set", "trainer.nnodes=2", "+data.seed=1"),
               ("needs-a-run.sh", "--set", "trainer.nodes=2"),
               ("unknown.txt", "--allow-unknown"), ("vllm-misspelt.sh", "--allow-unknown"),
               ("sglang-foreign.sh", "--allow-unknown"),
               ("fsdp-14b.sh", "--response-mean", "200", "--prompt-mean", "120", "--json"),
               ("fsdp-72b.sh", "--response-mean", "200", "--prompt-mean", "120"),
               ("megatron-mixtral.sh", "--model", "mixtral-8x7b"),
               ("ppo-critic.sh", "--critic", "qwen2.5-1.5b", "--reward", "qwen2.5-7b"))
    for number, (file, *words) in enumerate(special):
        yield Request(f"import-options-{number}", ("import", str(INPUTS / "imports" / file),
                                                   "--cluster", "h800-64", *words, "-o",
                                                   "plan.json"))
    for number, types in enumerate(("trainer=H100-SXM-80GB,rollout=A100-SXM-80GB",
                                    "trainer=H100-SXM-80GB,rollout=H100-SXM-80GB", "trainer")):
        yield Request(f"import-types-{number}",
                      ("import", str(INPUTS / "imports" / "pools.txt"), "--cluster",
                       "a100-h100-64", "--types", types, "-o", "plan.json"))
    ends = {"0": "a.yaml", "1": "a.txt", "2": "a.sh"}  # a seed's first byte says what it is
    for seed in sorted((TREE / "tests" / "fuzz" / "seeds").iterdir()):
        kind, text = seed.read_text()[:1], seed.read_text()[1:]
        yield Request(f"import-seed-{seed.name}",
                      ("import", ends[kind], "--cluster", "h800-64", "--model", "qwen2.5-7b"),
                      inputs=((ends[kind], text),))


def table(rows, columns):
    return "\n".join([",".join(columns)] + [",".join(str(row[c]) for c in columns) for row in rows])


def sweeps():
    for file in sorted((TREE / "tests" / "validation" / "data").glob("*.csv")):
        yield Request(f"sweep-{file.stem}", ("sweep", str(file), "-o", "out.csv"))
    yield Request("sweep-json", ("sweep", str(TREE / "tests/validation/data/verl.csv"), "--json"))
    rows = table(sweep_rows.rows(1500), sweep_rows.COLUMNS)
    yield Request("sweep-1500", ("sweep", "in.csv", "-o", "out.csv"), inputs=(("in.csv", rows),))
    open_rows = ["model,cluster,kind,gpus,global_batch,prompt_tokens,response_tokens,plan_engine,"
                 "rollout_weights,placement,train_gpus,gen_gpus"]
    for engine in ENGINES:
        for weights in ("", "keep", "unmap"):
            open_rows.append(f"qwen2.5-7b,h100-8,iteration,8,512,512,512,{engine},{weights},,,")
        open_rows.append(f"qwen3-30b-a3b,h200-8,iteration,8,512,512,512,{engine},,,,")
        open_rows.append(f"qwen2.5-7b,h100-64,iteration,16,512,512,512,{engine},,split,8,8")
    yield Request("sweep-engines", ("sweep", "in.csv", "-o", "out.csv"),
                  inputs=(("in.csv", "\n".join(open_rows)),))
    wrong = "model,cluster,kind,gpus,tp\nqwen2.5-7c,h100-8,train,8,2\nqwen2.5-7b,h100-8,trian,8,x\n"
    yield Request("sweep-wrong", ("sweep", "in.csv"), inputs=(("in.csv", wrong),))


def edited_plans():
    """A hand-written plan and broken ones before the commands that read plans."""
    text = {"empty": "{}", "list": "[]", "broken": '{"version": 1,', "none": json.dumps(None)}
    for name, content in text.items():
        for command in (("explain",), ("simulate",), ("export", "--to", "verl", "-o", "job")):
            yield Request(f"read-{name}-{command[0]}", (command[0], "p.json", *command[1:]),
                          inputs=(("p.json", content),))


def helps():
    for command in ("plan", "explain", "simulate", "sweep", "export", "import", "compare", "run"):
        yield Request(f"help-{command}", (command, "--help"))
    yield Request("help", ("--help",))
    yield Request("help-wrong", ("plam",))


def compared_runs():
    """The recorded run of the tests, beside its plan."""
    run = TREE / "tests" / "gui" / "data" / "run"
    for name, words in (("text", ()), ("json", ("--json",))):
        yield Request(f"compare-{name}", ("compare", str(run / "plan.json"), str(run), *words))
    yield Request("explain-run", ("explain", str(run / "plan.json"), "--rules", "default", "--run",
                                  str(run)))


def requests():
    all_plans = plans()
    known = {request.name for request in all_plans}
    asked = []
    for name in LOOKED_AT:
        if f"plan-{name}" not in known:
            raise ValueError(f"no request is named plan-{name}")
        asked += [*simulations(name), *explanations(name), *exports(name)]
    asked += more_exports("family-qwen2.5-7b-verl")
    return [*all_plans, *asked, *imports(), *sweeps(), *edited_plans(), *compared_runs(), *helps()]
