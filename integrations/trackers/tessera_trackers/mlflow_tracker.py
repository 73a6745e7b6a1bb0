"""Steps sent to an MLflow server, or to any other store that MLflow's library knows."""
from __future__ import annotations

import re
from pathlib import Path

from .run_folder import Step, identity, settings

IDENTITY, SENT = "tessera.run", "tessera.sent"  # tags
MOST_METRICS, MOST_PARAMETERS = 1000, 100  # of one request, by MLflow's REST API


def allowed(name: str) -> str:
    """A name as MLflow takes it: letters, digits and _ - . space : / alone; "@" is "_at_"."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


class MlflowTracker:
    """A run of an experiment, found by its identity or made."""

    def __init__(self, folder: Path, project: str, name: str, target: str):
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        own = identity(folder)
        self._client = MlflowClient(tracking_uri=target or None)
        experiment = self._client.get_experiment_by_name(project)
        where = experiment.experiment_id if experiment else self._client.create_experiment(project)
        known = self._client.search_runs([where], f"tags.`{IDENTITY}` = '{own}'")
        if known:
            self._run = known[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
        else:
            self._run = self._client.create_run(where, run_name=name).info.run_id
            parameters = [Param(allowed(key), value) for key, value in settings(folder).items()]
            for at in range(0, len(parameters), MOST_PARAMETERS):
                self._client.log_batch(self._run, params=parameters[at:at + MOST_PARAMETERS])
            # Last, so that a run is known only with all its parameters.
            self._client.set_tag(self._run, IDENTITY, own)
        sent = known[0].data.tags.get(SENT, "") if known else ""
        last, _, self.digest = sent.partition(" ")
        self.last = int(last) if last else None

    def send(self, step: Step) -> None:
        from mlflow.entities import Metric

        names = {allowed(key): key for key in step.numbers}
        if len(names) < len(step.numbers):
            raise ValueError(f"step {step.number}: two numbers have one name in MLflow")
        metrics = [Metric(name, step.numbers[key], int(1000 * step.time), step.number)
                   for name, key in names.items()]
        for at in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self._run, metrics=metrics[at:at + MOST_METRICS])
        self._client.set_tag(self._run, SENT, f"{step.number} {step.digest}")

    def close(self) -> str:
        self._client.set_terminated(self._run)
        return f"MLflow run {self._run}"
