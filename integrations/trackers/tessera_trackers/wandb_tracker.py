"""Steps kept for `wandb sync`, or sent at once where WANDB_MODE=online says so."""
from __future__ import annotations

import json
import os
from pathlib import Path

from .run_folder import InputError, Step, identity, settings

AXIS = "training/global_step"


class WandbTracker:
    """An offline run in `target`/wandb; runs of one identity become one on the server."""

    def __init__(self, folder: Path, project: str, name: str, target: str):
        import wandb

        where = Path(target or ".")
        where.mkdir(parents=True, exist_ok=True)
        own = identity(folder)
        # An offline run cannot be asked what was sent: a file beside it says so.
        self._state = where / f"tessera-{own}.json"
        try:
            sent = json.loads(self._state.read_text()) if self._state.exists() else {}
        except ValueError as error:
            raise InputError(f"{self._state}: {error}; remove it and all steps are kept again") \
                from error
        self.last, self.digest = sent.get("step"), sent.get("digest", "")
        self._run = wandb.init(
            project=project, name=name, id=own, dir=str(where), resume="allow",
            mode=os.environ.get("WANDB_MODE", "offline"),
            config=settings(folder),
            settings=wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off",
                                    silent=True, disable_git=True, save_code=False))
        # An axis of our own: wandb's may only grow, and a run may take steps back.
        self._run.define_metric(AXIS)
        self._run.define_metric("*", step_metric=AXIS)

    def send(self, step: Step) -> None:
        self._run.log({**step.numbers, AXIS: step.number})
        fresh = self._state.with_suffix(".new")
        fresh.write_text(json.dumps({"step": step.number, "digest": step.digest}))
        os.replace(fresh, self._state)

    def close(self) -> str:
        where = self._run.settings.sync_dir
        self._run.finish()
        return f"wandb sync {where}" if self._run.settings.mode == "offline" else self._run.url
