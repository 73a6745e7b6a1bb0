"""The worker extension: methods that a run calls on every worker by POST /collective_rpc.

vLLM 0.24.0 adds the class named by --worker-extension-cls to its worker's bases
(v1/worker/worker_base.py, WorkerWrapperBase.init_worker). Arguments are texts, replies are dicts of
texts and numbers; what goes wrong is a reply with `error`, so that the engine lives on and the run
can say why.
"""

import json
import time

import torch

from tessera_vllm import digest, links
from tessera_vllm.slices import MappedWeights, SentWeights, Slices


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
        """Checks the table (slices.py) against the model. Maps the trainer's memory, or is ready to
        join those that send. From here on the worker draws by draws.py, also where the rest fails: ranks
        of which one alone fails would draw different tokens of a sequence."""
        self.tessera_detach()
        print(f"tessera: seeds are drawn by {self._tessera_draws()}", flush=True)
        worker = self._tessera_place()
        self._tessera_slices = Slices(table, worker, self._tessera_parameters())
        if "link" not in self._tessera_slices.table:
            self._tessera_weights = MappedWeights(self._tessera_slices)
        return {"worker": worker}

    @_told
    def tessera_join(self, timeout_s):
        """Meets the ranks that send; they call their part at the same time."""
        slices, timeout = self._tessera_slices, float(timeout_s)
        link = links.make_link(slices.table["link"], self._tessera_place(), timeout)
        self._tessera_weights = SentWeights(slices, link, timeout)
        return {}

    @_told
    def tessera_update(self):
        """Brings every slice to its place; returns when they are there."""
        start = time.perf_counter()
        moved = self._tessera_weights.bring()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return {"bytes": moved, "seconds": time.perf_counter() - start}

    @_told
    def tessera_verify(self):
        """Fails where a slice is not what the trainer's memory holds, and names the tensors."""
        names = self._tessera_weights.differences()
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            raise ValueError(f"not the trainer's weights: {', '.join(names[:4])}{more}")
        return {}

    @_told
    def tessera_digests(self):
        """Digests (digest.py) of what the parameters hold, by tensor of the checkpoint."""
        return self._tessera_slices.digests()

    @_told
    def tessera_describe(self):
        """What the worker is: its place, how many share the model, the type and shape of each of its
        parameters, and the model's config.json with all defaults."""
        parallel = self.vllm_config.parallel_config
        config = self.vllm_config.model_config.hf_config
        return {
            "worker": self._tessera_place(),
            "tensor_parallel_size": parallel.tensor_parallel_size,
            "pipeline_parallel_size": parallel.pipeline_parallel_size,
            "parameters": {
                name: [str(one.dtype).removeprefix("torch."), list(one.shape)]
                for name, one in self._tessera_parameters().items()
            },
            "config": config.to_json_string(use_diff=False),
        }

    @_told
    def tessera_rectangle_digests(self, lists):
        """Digests, as texts, of this worker's list of rectangles (digest.py, digests_of)."""
        mine = json.loads(lists)[self._tessera_place()]
        return {"digests": digest.digests_of(self._tessera_parameters(), mine)}

    @_told
    def tessera_keep_rectangles(self, lists):
        """Keeps this worker's list for tessera_kept_digests."""
        self._tessera_rectangles = json.loads(lists)[self._tessera_place()]
        return {"rectangles": len(self._tessera_rectangles)}

    @_told
    def tessera_kept_digests(self):
        """Digests of the rectangles that were kept."""
        return {"digests": digest.digests_of(self._tessera_parameters(), self._tessera_rectangles)}

    @_told
    def tessera_detach(self):
        """Gives the trainer's memory back, or leaves those that send."""
        weights = self.__dict__.pop("_tessera_weights", None)
        self.__dict__.pop("_tessera_slices", None)
        if weights is not None:
            weights.close()
        return {}

    def _tessera_draws(self):
        runner = getattr(self, "model_runner", None)
        if runner is None:
            return "vLLM"
        import vllm
        from tessera_vllm import draws

        return draws.install(runner, vllm.__version__)

    def _tessera_place(self):
        return self.rank % self.vllm_config.parallel_config.tensor_parallel_size

    def _tessera_parameters(self):
        return dict(self.get_model().named_parameters())
