"""vLLM's scheduler, named by --scheduler-cls: what a run's samples say stays in the engine until they end.

vLLM 0.24.0 sends every sample's token of a step from the engine's process to the server's, with three arrays
of its log-prob (v1/core/sched/scheduler.py, update_from_output), and the server turns a loop over them. A run
reads a sample once, at its end: here tokens and log-probs of requests that the route (serve.py) has named are
kept in lists, and leave together with the reason of the end. Requests of others are vLLM's.
"""

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from tessera_vllm.serve import LOG_PROBS, NAME


class _Kept:
    """Beside one of vLLM's schedulers."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._tessera_samples = {}  # request: (tokens, log-probs)

    def update_from_output(self, scheduler_output, model_runner_output):
        told = model_runner_output.logprobs
        if told is not None and all(map(_ours, scheduler_output.num_scheduled_tokens)):
            model_runner_output.logprobs = None  # not to be cut into slices that nobody reads
        rows = _Rows(model_runner_output.req_id_to_index, told) if told is not None else None
        clients = super().update_from_output(scheduler_output, model_runner_output)
        for client, batch in list(clients.items()):
            batch.outputs = [each for each in batch.outputs
                             if not _ours(each.request_id) or self._ends(each, rows)]
            said = batch.outputs or batch.finished_requests or batch.scheduler_stats is not None
            if not said:
                del clients[client]
        return clients

    def _ends(self, output, rows):
        """Whether the sample of this output is whole; the output then has all of it."""
        name = output.request_id
        tokens, log_probs = self._tessera_samples.setdefault(name, ([], []))
        if output.new_token_ids and rows is not None:
            log_probs.extend(rows.log_probs(name, output.new_token_ids))
        tokens.extend(output.new_token_ids)
        if output.finish_reason is None:
            return False
        del self._tessera_samples[name]
        output.new_token_ids, output.new_logprobs = tokens, None
        output.kv_transfer_params = {**(output.kv_transfer_params or {}), LOG_PROBS: log_probs}
        return True

    def finish_requests(self, request_ids, finished_status):
        ended = super().finish_requests(request_ids, finished_status)
        for name, _ in ended:
            self._tessera_samples.pop(name, None)
        return ended


class _Rows:
    """Log-probs of the tokens that a step drew, of v1/outputs.py's LogprobsLists."""

    def __init__(self, places, told):
        self._places, self._firsts = places, told.cu_num_generated_tokens
        self._tokens = told.logprob_token_ids[:, 0].tolist()  # a position's drawn token is its first
        self._values = told.logprobs[:, 0].tolist()

    def log_probs(self, name, tokens):
        first = self._places[name]
        if self._firsts is not None:
            first = self._firsts[first]
        last = first + len(tokens)
        same = self._tokens[first:last] == tokens
        return self._values[first:last] if same else [None] * len(tokens)  # the route tells the run


class _KeptAsync(_Kept, AsyncScheduler):
    pass


class _KeptInTurn(_Kept, Scheduler):
    pass


def _ours(name):
    return name.startswith(NAME)


def make_scheduler(vllm_config, **named):
    """The scheduler that vLLM would take (config/scheduler.py, get_scheduler_cls), and the above."""
    kind = _KeptAsync if vllm_config.scheduler_config.async_scheduling else _KeptInTurn
    return kind(vllm_config=vllm_config, **named)
