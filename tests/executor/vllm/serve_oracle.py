"""The route of generation by itself: what becomes of an engine's requests when the client goes, or one fails.

The engine counts as vLLM's AsyncLLM.generate would (v1/engine/async_llm.py): a generator that is cancelled
aborts its request.
"""

import asyncio
import json
import types

from fake_vllm import stand_for_vllm
from tessera_vllm import serve

BODY = {"token_ids": [1, 2], "seeds": [5, 6, 7], "max_tokens": [4, 4, 4], "sampling_params": {}}


class Engine:
    def __init__(self, fails=False):
        self.begun = self.aborted = 0
        self.fails = fails

    async def generate(self, prompt, params, name):
        self.begun += 1
        try:
            if self.fails and self.begun == 2:
                raise ValueError("too long")
            await asyncio.Event().wait()
            yield None
        except asyncio.CancelledError:
            self.aborted += 1
            raise


async def call(engine, goes):
    sent, asked = [], []

    async def receive():
        asked.append(True)
        if len(asked) == 1:
            return {"type": "http.request", "body": json.dumps(BODY).encode()}
        while not goes or engine.begun < 3:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    state = types.SimpleNamespace(engine_client=engine)
    scope = {"type": "http", "path": serve.PATH, "app": types.SimpleNamespace(state=state)}
    await asyncio.wait_for(serve.Generate(None)(scope, receive, send), 20)
    for _ in range(10):
        await asyncio.sleep(0)
    return sent


def main():
    stand_for_vllm()
    gone = Engine()
    assert asyncio.run(call(gone, goes=True)) == [], "a reply to nobody"
    assert (gone.begun, gone.aborted) == (3, 3), (gone.begun, gone.aborted)
    failed = Engine(fails=True)
    sent = asyncio.run(call(failed, goes=False))
    assert sent[0]["status"] == 400 and b"too long" in sent[1]["body"], sent
    assert failed.aborted == failed.begun - 1, (failed.begun, failed.aborted)


main()
