"""The scheduler that keeps samples until they end (tessera_vllm/scheduler.py), over one that says of every
step what vLLM's says (v1/core/sched/scheduler.py, update_from_output).
"""

import sys
import types

import numpy as np


class Named:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def logprobs_lists(tokens, values, firsts=None):
    """v1/outputs.py's LogprobsLists; a position's drawn token comes first."""
    tokens, values = np.asarray(tokens, np.int32), np.asarray(values, np.float32)
    lists = Named(logprob_token_ids=np.stack([tokens, tokens + 1], 1), cu_num_generated_tokens=firsts,
                  logprobs=np.stack([values, values - 1], 1))
    lists.slice_request = lambda row, count: (row, count)
    return lists


class Scheduler:
    """A request's output of a step is a token, or those that `drawn` names."""

    def __init__(self, vllm_config, ends=()):
        self.config, self.ends = vllm_config, dict(ends)

    def update_from_output(self, scheduler_output, runner_output):
        clients = {}
        for name in scheduler_output.num_scheduled_tokens:
            row = runner_output.req_id_to_index[name]
            tokens = runner_output.sampled_token_ids[row]
            if not tokens:  # a part of a prompt
                continue
            told = runner_output.logprobs
            batch = clients.setdefault(0, Named(outputs=[], finished_requests=None,
                                                scheduler_stats=None))
            batch.outputs.append(Named(
                request_id=name, new_token_ids=tokens, kv_transfer_params=None,
                new_logprobs=told.slice_request(row, len(tokens)) if told else None,
                finish_reason="length" if tokens[-1] == self.ends.get(name) else None))
        return clients

    def finish_requests(self, names, _):
        return [(name, 0) for name in names]


class AsyncScheduler(Scheduler):
    pass


def stand_for_vllm():
    for name, held in (("scheduler", Scheduler), ("async_scheduler", AsyncScheduler)):
        module = types.ModuleType("vllm.v1.core.sched." + name)
        setattr(module, held.__name__, held)
        sys.modules[module.__name__] = module


stand_for_vllm()
from tessera_vllm import scheduler, serve  # noqa: E402


def made(ends, asynchronous=True):
    config = Named(scheduler_config=Named(async_scheduling=asynchronous))
    kept = scheduler.make_scheduler(config, ends=ends)
    assert isinstance(kept, AsyncScheduler) == asynchronous and kept.config is config
    return kept


def step(kept, drawn, values, order=None, firsts=None, named=None):
    """Draws {request: tokens}, in the rows that `order` says; the outputs, and what the step's were."""
    order = order or list(drawn)
    flat = [token for name in order for token in drawn[name] or [0]]
    output = Named(req_id_to_index={name: row for row, name in enumerate(order)},
                   sampled_token_ids=[drawn[name] for name in order],
                   logprobs=logprobs_lists(named or flat, values, firsts))
    return kept.update_from_output(Named(num_scheduled_tokens=dict.fromkeys(drawn, 1)), output), output


def log_probs_of(output):
    return [round(value, 3) for value in output.kv_transfer_params[serve.LOG_PROBS]]


def check_samples_come_whole():
    kept = made({"tessera-a": 12, "tessera-b": 22})
    said, runner = step(kept, {"tessera-a": [10], "tessera-b": []}, [-1, -9])
    assert said == {} and runner.logprobs is None
    said, _ = step(kept, {"tessera-a": [11], "tessera-b": [21]}, [-3, -2], ["tessera-b", "tessera-a"])
    assert said == {}
    said, _ = step(kept, {"tessera-a": [12], "tessera-b": [20]}, [-4, -5])
    (whole,) = said[0].outputs
    assert whole.new_token_ids == [10, 11, 12] and log_probs_of(whole) == [-1, -2, -4]
    assert whole.new_logprobs is None and whole.finish_reason == "length"
    said, _ = step(kept, {"tessera-b": [23, 22]}, [-6, -7], firsts=[0])
    (whole,) = said[0].outputs
    assert whole.new_token_ids == [21, 20, 23, 22] and log_probs_of(whole) == [-3, -5, -6, -7]
    assert kept._tessera_samples == {}


def check_others_are_vllms():
    kept = made({"cmpl-1": 3}, asynchronous=False)
    said, runner = step(kept, {"cmpl-1": [1], "tessera-a": [5]}, [-1, -2])
    (other,) = said[0].outputs
    assert other.request_id == "cmpl-1" and other.new_token_ids == [1]
    assert other.new_logprobs == (0, 1) and runner.logprobs is not None
    said, _ = step(kept, {"cmpl-1": [3]}, [-1])
    assert said[0].outputs[0].finish_reason == "length"
    assert said[0].outputs[0].kv_transfer_params is None


def check_aborted_samples_are_forgotten():
    kept = made({})
    step(kept, {"tessera-a": [5]}, [-1])
    assert kept.finish_requests(["tessera-a", "cmpl-1"], None) == [("tessera-a", 0), ("cmpl-1", 0)]
    assert kept._tessera_samples == {}


def check_other_tokens_are_told():
    kept = made({"tessera-a": 5})
    said, _ = step(kept, {"tessera-a": [5]}, [-1], named=[6])
    (whole,) = said[0].outputs
    output = Named(outputs=[Named(token_ids=[5], logprobs=None, finish_reason="length")],
                   kv_transfer_params=whole.kv_transfer_params)
    assert serve.told(output)["log_probs"] == [None]
    output.kv_transfer_params = {serve.LOG_PROBS: [-1.0]}
    assert serve.told(output)["log_probs"] == [-1.0]


def check_vllms_own_log_probs_are_read():
    """Of a server without the scheduler: flat, the drawn token's first."""
    flat = Named(start_indices=[0, 2], token_ids=[5, 9, 7, 5], logprobs=[-1.0, -0.5, -2.0, -0.25])
    output = Named(outputs=[Named(token_ids=[5, 7], logprobs=flat, finish_reason="stop")],
                   kv_transfer_params=None)
    assert serve.told(output) == {"token_ids": [5, 7], "log_probs": [-1.0, -2.0],
                                  "finish_reason": "stop"}
    flat.token_ids[2] = 8
    assert serve.told(output)["log_probs"] == [-1.0, None]


def main():
    check_samples_come_whole()
    check_others_are_vllms()
    check_aborted_samples_are_forgotten()
    check_other_tokens_are_told()
    check_vllms_own_log_probs_are_read()


main()
