"""The worker extension: methods that a run calls on every worker by POST /collective_rpc.

vLLM 0.24.0 adds the class named by --worker-extension-cls to its worker's bases
(v1/worker/worker_base.py, WorkerWrapperBase.init_worker). Arguments are texts, replies are dicts of
texts and numbers; what goes wrong is a reply with `error`, so that the engine lives on and the run
can say why.
"""

import time

import torch

from tessera_vllm.slices import Slices


def _told(method):
    """`method`, with what it raises as a reply."""

    def reply(self, *arguments):
        try:
            return method(self, *arguments)
        except Exception as error:  # noqa: BLE001: whatever it is, the run must be told
            return {"error": f"{type(error).__name__}: {error}"}

    return reply


class WeightReceiver:
    """`self` is vLLM's worker: it has `rank` and `get_model()`. Names begin with tessera_, since
    vLLM refuses names that the worker has already."""

    @_told
    def tessera_attach(self, table):
        """Maps the trainer's memory and checks the table (slices.py) against the model."""
        self.tessera_detach()
        worker = self.rank % self.vllm_config.parallel_config.tensor_parallel_size
        self._tessera_slices = Slices(table, worker, dict(self.get_model().named_parameters()))
        return {"worker": worker}

    @_told
    def tessera_update(self):
        """Copies every slice to its place; returns when they are there."""
        start = time.perf_counter()
        moved = self._tessera_slices.copy()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return {"bytes": moved, "seconds": time.perf_counter() - start}

    @_told
    def tessera_verify(self):
        """Fails where a slice is not what the trainer's memory holds, and names the tensors."""
        names = self._tessera_slices.differences()
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            raise ValueError(f"not the trainer's weights: {', '.join(names[:4])}{more}")
        return {}

    @_told
    def tessera_digests(self):
        """Digests (digest.py) of what the parameters hold, by tensor of the checkpoint."""
        return self._tessera_slices.digests()

    @_told
    def tessera_detach(self):
        """Gives the trainer's memory back."""
        slices = self.__dict__.pop("_tessera_slices", None)
        if slices is not None:
            slices.close()
        return {}
