#!/usr/bin/env python3
"""verl's own judgement of exported configurations.

usage: verl_oracle.py FOLDER...
  FOLDER  holds verl.yaml (a Hydra configuration) and overrides.txt (one override per line)

For each folder, with verl 0.9.1's own code: Hydra composes its default configuration with the YAML
and with the overrides, both must resolve to the same tree, verl.utils.config.validate_config must
accept it, and every section with a _target_ must become its dataclass. Prints one JSON line per
folder: {"folder", "error" or "values"}; exits 1 when any has an error.
"""
import ast
import contextlib
import json
import os
import sys
import types
import warnings

warnings.simplefilter("ignore")
os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
os.environ["HF_HUB_OFFLINE"] = "1"  # models are local folders

from hydra import compose, initialize_config_dir, initialize_config_module  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402

import verl  # noqa: E402
from verl.utils.config import omega_conf_to_dataclass, validate_config  # noqa: E402

SECTIONS = (
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "actor_rollout_ref.rollout.checkpoint_engine",
    "algorithm",
    "reward.reward_model",
)


def resolved(config):
    # Names that a run fills in; a missing value (???) may not be resolved.
    if not config.reward.reward_model.enable:
        config.reward.reward_model.rollout.name = "vllm"
    return OmegaConf.to_container(config, resolve=True)


def reference_of(config):
    """What workers/engine_workers.py makes of `ref` before it becomes a dataclass."""
    ref = OmegaConf.create(OmegaConf.to_container(config.actor_rollout_ref.ref, resolve=True))
    ref.ppo_mini_batch_size = config.actor_rollout_ref.actor.ppo_mini_batch_size
    for name in ("micro_batch_size", "micro_batch_size_per_gpu", "max_token_len_per_gpu"):
        ref[f"ppo_{name}"] = ref.pop(f"log_prob_{name}", None)
    ref.use_dynamic_bsz = ref.pop("log_prob_use_dynamic_bsz", False)
    return omega_conf_to_dataclass(ref)


def check_separate(config):
    """The conditions of the asynchronous trainer's own constructor, run from verl's source: the
    module itself cannot be imported without Ray's and the rollout engines' packages."""
    path = os.path.join(os.path.dirname(verl.__file__), "trainer/ppo/v1/trainer_separate_async.py")
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    trainer = next(n for n in tree.body if getattr(n, "name", "") == "PPOTrainerSeparateAsync")
    start = next(n for n in trainer.body if getattr(n, "name", "") == "__init__")
    ends = next(i for i, n in enumerate(start.body) if "super().__init__" in ast.unparse(n))
    conditions = ast.Module(body=start.body[:ends], type_ignores=[])
    assert sum(isinstance(n, ast.Assert) for n in ast.walk(conditions)) >= 5
    names = {
        "config": config,
        "self": types.SimpleNamespace(),
        "need_reward_model": lambda c: bool(c.reward.reward_model.enable),
    }
    exec(compile(conditions, path, "exec"), names)
    omega_conf_to_dataclass(config.trainer.v1.separate_async.hybrid_rollout)


def check(folder):
    with initialize_config_dir(os.path.abspath(folder), version_base=None):
        from_yaml = compose("verl")
    with open(os.path.join(folder, "overrides.txt"), encoding="utf-8") as file:
        overrides = [line.rstrip("\n") for line in file if line.strip()]
    with initialize_config_module("verl.trainer.config", version_base=None):
        from_overrides = compose("ppo_trainer", overrides=overrides)
    tree = resolved(from_yaml)
    assert tree == resolved(from_overrides), "YAML and overrides differ"
    config = from_yaml
    critic = bool(config.critic.enable)
    reference = config.actor_rollout_ref.actor.use_kl_loss or config.algorithm.use_kl_in_reward
    if critic:  # folders without tokenizer files will do
        with open_dict(config.critic.model):
            config.critic.model.load_tokenizer = False
    validate_config(config, reference, critic)
    made = {name: omega_conf_to_dataclass(OmegaConf.select(config, name)) for name in SECTIONS}
    rollout = made["actor_rollout_ref.rollout"]
    world = config.trainer.nnodes * config.trainer.n_gpus_per_node
    mode = config.trainer.v1.trainer_mode
    pool = world if mode == "sync" else rollout.nnodes * rollout.n_gpus_per_node
    if mode == "separate_async":
        check_separate(config)
    engine = rollout.tensor_model_parallel_size * rollout.data_parallel_size
    assert pool % (engine * rollout.pipeline_model_parallel_size) == 0, "rollout replicas"
    actor = made["actor_rollout_ref.actor"]
    values = {
        "actor": type(actor).__name__,
        "strategy": actor.engine.strategy,
        "mini_batch": actor.ppo_mini_batch_size * rollout.n,
        "update_tokens": actor.ppo_max_token_len_per_gpu,
        "rollout_tp": rollout.tensor_model_parallel_size,
        "world": world,
        "mode": mode,
        "pool": pool,
        "model": config.actor_rollout_ref.model.path,
        "train_files": config.data.train_files,
        "val_files": config.data.val_files,
    }
    if reference:
        values["reference_tokens"] = reference_of(config).ppo_max_token_len_per_gpu
    if critic:
        # As trainer/ppo/v1/trainer_base.py fills the critic's engine.
        made_critic = omega_conf_to_dataclass(
            OmegaConf.masked_copy(config.critic, [k for k in config.critic if k != "model"])
        )
        values["critic_tokens"] = made_critic.ppo_infer_max_token_len_per_gpu
        values["critic_cp"] = getattr(made_critic.engine, "ulysses_sequence_parallel_size", 1)
    return values


def main():
    bad = 0
    for folder in sys.argv[1:]:
        line = {"folder": folder}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                line["values"] = check(folder)
        except Exception as error:  # noqa: BLE001: every failure is a verdict
            line["error"] = f"{type(error).__name__}: {error}"
            bad = 1
        print(json.dumps(line))
    return bad


if __name__ == "__main__":
    sys.exit(main())
