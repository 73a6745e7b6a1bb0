"""Generation for a run in one request a prompt: a part of vLLM's API server, named by --middleware.

POST /tessera/generate takes {"token_ids": [...], "seeds": [...], "max_tokens": [...], "sampling_params":
{...}}, a seed and a limit for each sample, and replies {"samples": [{"token_ids": [...], "log_probs":
[...], "finish_reason": "stop"}, ...]} in their order. Each sample is a request of its own to the engine
(vLLM 0.24.0, v1/engine/async_llm.py), whose outputs come once, at its end: with their log-probs beside them
where the engine has our scheduler (scheduler.py), else with flat ones of vLLM's. A log-prob that vLLM names
for another token than it has drawn is null. A client that goes away gives its samples up: the engine
computes none that nobody awaits.
"""

import asyncio
import json
import uuid

try:
    from msgspec.json import encode
except ImportError:  # vLLM brings it

    def encode(value):
        return json.dumps(value).encode()


PATH = "/tessera/generate"
NAME = "tessera-"  # of a request
LOG_PROBS = "tessera_log_probs"  # of a sample, among what an engine tells of it


class Generate:
    """ASGI middleware: answers PATH, and hands everything else on."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != PATH:
            return await self._app(scope, receive, send)
        try:
            request = json.loads(await _body(receive))
            work = _samples(scope["app"].state.engine_client, request)
            samples = await _unless_gone(work, receive)
        except (KeyError, TypeError, ValueError) as error:
            return await _reply(send, 400, {"error": f"{type(error).__name__}: {error}"})
        except Exception as error:  # noqa: BLE001: an engine that is dead, say
            return await _reply(send, 500, {"error": f"{type(error).__name__}: {error}"})
        if samples is None:
            return None
        return await _reply(send, 200, {"samples": samples})


async def _body(receive):
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ValueError("the client has gone")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless_gone(work, receive):
    """What `work` returns; None, with the work given up, where the client goes before it is done."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.wait({task, gone})


async def _reply(send, status, value):
    body = encode(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _samples(engine, request):
    """The samples of a request; where one fails the others are given up."""
    seeds, limits = request["seeds"], request["max_tokens"]
    if len(seeds) != len(limits) or not seeds:
        raise ValueError(f"{len(seeds)} seeds and {len(limits)} limits")
    name = uuid.uuid4().hex
    tasks = [
        asyncio.ensure_future(_sample(engine, request, f"{NAME}{name}-{i}", seed, limit))
        for i, (seed, limit) in enumerate(zip(seeds, limits))
    ]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise


async def _sample(engine, request, name, seed, limit):
    from vllm.inputs import tokens_input
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    params = SamplingParams(
        **request["sampling_params"],
        n=1,
        seed=seed,
        max_tokens=limit,
        logprobs=0,  # of the drawn token
        flat_logprobs=True,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    last = None
    async for output in engine.generate(tokens_input(request["token_ids"]), params, name):
        last = output
    if last is None:
        raise RuntimeError(f"{name} has no output")
    return told(last)


def told(output):
    """What a run reads of a vllm.outputs.RequestOutput of one sample, None for a log-prob that is another
    token's. Among flat log-probs the drawn token's is the first of its position's (v1/sample/sampler.py,
    gather_logprobs)."""
    (sample,) = output.outputs
    tokens, kept = list(sample.token_ids), (output.kv_transfer_params or {}).get(LOG_PROBS)
    if kept is None:
        flat = sample.logprobs
        kept = [
            flat.logprobs[first] if flat.token_ids[first] == token else None
            for first, token in zip(flat.start_indices, tokens)
        ]
    return {"token_ids": tokens, "log_probs": kept, "finish_reason": sample.finish_reason}
