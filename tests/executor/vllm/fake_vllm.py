#!/usr/bin/env python3
"""A server that speaks vLLM 0.24.0's protocol as far as a run uses it, over a small model on the CPU.

Routes, their arguments and replies as in vLLM: entrypoints/serve/dev/{sleep,rpc,cache}/api_router.py,
entrypoints/serve/instrumentator/{health,basic}.py. Unless weights are "dummy" they are those of the
folder's model.safetensors. The middleware that the command line names is called
as Starlette calls it, with an engine whose generate() is as AsyncLLM's (v1/engine/async_llm.py) for
parameters that SamplingParams has (sampling_params.py). Workers have the extension class that the
command line names. Weights are the trainer's or nothing: sleeping at
level 2 leaves NaN. Requests of a sleeping server wait, as vLLM's do. It meets itself by torch's
rendezvous first, as vLLM's workers meet (distributed/parallel_state.py), so that variables of a launcher
that keep them apart keep it from starting.

FAKE_VLLM_FAULT=KIND[:N] makes it faulty, from its N-th request to generate on (default 1):
start (ends before it is ready), version, crash, hang, refuse, short, token, name, unknown, stale,
flip (a bit of a weight, in every update), kill and stop (SIGKILL and SIGSTOP of itself), kill_update and
stop_update (in the N-th update of weights), kill_sleep and stop_sleep (in the N-th sleep), kill_asleep
(behind it), kill_wake (in the N-th wake_up). Where FAKE_VLLM_ONCE names a file the fault comes
once, to whoever removes the file. Then there are kinds that begin as kill and say what becomes of servers
that are started later: aged (of another version), gone (they end before they are ready), flip_anew (a bit of a
weight, in every update) and flip_late (behind the comparison that follows it).
"""

import argparse
import asyncio
import dataclasses
import datetime
import enum
import http.server
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
import types
import urllib.parse

import torch
import torch.distributed
import vllm_layout

ROWS = 64  # of a batch, at most
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FAULT, _, SINCE = os.environ.get("FAKE_VLLM_FAULT", "").partition(":")
ONCE = os.environ.get("FAKE_VLLM_ONCE")
LATE = ONCE is not None and not os.path.exists(ONCE)  # started behind the fault
GENERATING = ["kill", "stop", "aged", "gone", "flip_anew", "flip_late"]


def first():
    """Whether this process is the one that has the fault."""
    if ONCE is None:
        return True
    try:
        os.unlink(ONCE)
    except FileNotFoundError:
        return False
    return True


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    for name, default in (("host", "127.0.0.1"), ("load-format", "auto"), ("dtype", "auto"),
                          ("generation-config", "auto"), ("logprobs-mode", "raw_logprobs"),
                          ("worker-extension-cls", ""), ("middleware", ""),
                          ("scheduler-cls", "")):
        parser.add_argument("--" + name, default=default)
    for name, default in (("port", 8000), ("tensor-parallel-size", 1), ("max-model-len", 0),
                          ("max-num-seqs", 256), ("max-num-batched-tokens", 8192)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    for name in ("skip-tokenizer-init", "enable-sleep-mode", "enforce-eager",
                 "disable-uvicorn-access-log", "disable-log-stats"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction)
    return parser.parse_args()


class RequestOutputKind(enum.Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclasses.dataclass
class SamplingParams:
    """The fields that a run names, with vLLM's defaults and checks (_verify_args)."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop_token_ids: list = dataclasses.field(default_factory=list)
    ignore_eos: bool = False
    max_tokens: int = 16
    logprobs: int | None = None
    flat_logprobs: bool = False
    detokenize: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE

    def __post_init__(self):
        if not 0 < self.top_p <= 1 or FAULT == "refuse":
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}.")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}.")


def stand_for_vllm():
    """The modules of vLLM that the middleware imports."""
    package = types.ModuleType("vllm")
    inputs, params = types.ModuleType("vllm.inputs"), types.ModuleType("vllm.sampling_params")
    inputs.tokens_input = lambda tokens: {"type": "token", "prompt_token_ids": tokens}
    params.SamplingParams, params.RequestOutputKind = SamplingParams, RequestOutputKind
    sys.modules.update({"vllm": package, "vllm.inputs": inputs, "vllm.sampling_params": params})


class Named:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def make_worker(extension, folder, shape, tp, rank, dtype):
    """A worker as vLLM makes it: the extension among its bases, `rank` and get_model()."""
    class Worker(extension):
        def get_model(self):
            return self.model

    worker = Worker()
    worker.rank = rank
    worker.vllm_config = Named(
        parallel_config=Named(tensor_parallel_size=tp, pipeline_parallel_size=1),
        model_config=Named(hf_config=HfConfig(folder)),
    )
    worker.model = vllm_layout.Model(shape, tp, rank, dtype)
    return worker


class HfConfig:
    """The model's config as its file has it; as transformers, which is slow to import, gives it to vLLM where
    FAKE_VLLM_TRANSFORMERS is set."""

    def __init__(self, folder):
        self.folder = folder

    def to_json_string(self, use_diff):
        if "FAKE_VLLM_TRANSFORMERS" not in os.environ:
            return open(self.folder + "/config.json").read()
        import transformers

        config = transformers.AutoConfig.from_pretrained(self.folder)
        return config.to_json_string(use_diff=use_diff)


def load(workers, folder):
    import safetensors.torch

    for name, tensor in safetensors.torch.load_file(folder + "/model.safetensors").items():
        for worker in workers:
            worker.model.load_weight(name, tensor)


class Engine:
    def __init__(self, options):
        self.options = options
        shape = vllm_layout.Shape(options.model)
        module, _, name = options.worker_extension_cls.rpartition(".")
        extension = getattr(importlib.import_module(module), name) if name else object
        tp = options.tensor_parallel_size
        self.workers = [
            make_worker(extension, options.model, shape, tp, rank, TYPES[options.dtype])
            for rank in range(tp)
        ]
        if options.load_format != "dummy":
            load(self.workers, options.model)
        self.asleep = set()  # tags
        self.awake = threading.Condition()
        self.computing = threading.Lock()
        self.waiting = []  # requests that nobody computes yet
        self.requests = self.updates = self.sleeps = self.wakes = 0

    def end(self, kinds, count):
        """The signal of a fault of these kinds, at the N-th of what is counted."""
        if FAULT in kinds and count >= int(SINCE or 1) and first():
            print(f"fault {FAULT}", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP if FAULT.startswith("stop") else signal.SIGKILL)
            threading.Event().wait()  # another thread may take the signal, and this one is not to go on

    def sleep(self, level):
        self.sleeps += 1
        self.end(["kill_sleep", "stop_sleep"], self.sleeps)
        assert self.options.enable_sleep_mode, "sleep mode is not enabled"
        with self.awake:
            self.asleep = {"weights", "kv_cache"}
            if level == 2 and FAULT != "stale":
                for worker in self.workers:
                    for parameter in worker.model.table.values():
                        parameter.data.fill_(float("nan"))

    def wake(self, tags):
        self.wakes += 1
        self.end(["kill_wake"], self.wakes)
        with self.awake:
            self.asleep -= set(tags or ["weights", "kv_cache"])
            self.awake.notify_all()

    def faulty(self, kind):
        return FAULT == kind and self.requests >= int(SINCE or 1)

    def collective_rpc(self, method, values):
        if FAULT == "stale" and method == "tessera_update":
            tables = [worker._tessera_slices for worker in self.workers]
            return [{"bytes": sum(map(table.bytes_of, table.all)), "seconds": 0.0}
                    for table in tables]
        if method == "tessera_update":
            self.updates += 1
            self.end(["kill_update", "stop_update"], self.updates)
        replies = [getattr(worker, method)(*values) for worker in self.workers]
        flips = {"flip": "tessera_update"}
        if LATE:
            flips |= {"flip_anew": "tessera_update", "flip_late": "tessera_verify"}
        if flips.get(FAULT) == method:
            held = self.workers[0].model.table["model.layers.0.self_attn.o_proj.weight"].data
            held.view(torch.int32)[3, 5] ^= 1 << 20
        return replies

    async def generate(self, prompt, params, name):
        """As AsyncLLM.generate: a request output at the end, of one sample."""
        assert params.output_kind == RequestOutputKind.FINAL_ONLY and params.n == 1
        assert params.flat_logprobs and params.logprobs == 0 and not params.detokenize
        own = Named(prompt=prompt["prompt_token_ids"], params=params, reply=None)
        with self.awake:
            self.waiting.append(own)
        await asyncio.to_thread(self.run, own)
        yield Named(outputs=[own.reply], kv_transfer_params=self.kept(own.reply))

    def kept(self, reply):
        """What the scheduler of integrations/vllm says of a sample; vLLM then has no log-probs of it."""
        if not self.options.scheduler_cls:
            return None
        flat, reply.logprobs = reply.logprobs, Named(start_indices=[], token_ids=[], logprobs=[])
        pairs = zip(reply.token_ids, flat.token_ids, flat.logprobs)
        return {"tessera_log_probs": [value if token == named else None for token, named, value in pairs]}

    def run(self, own):
        with self.awake:
            self.requests += 1
            self.awake.wait_for(lambda: not self.asleep)
        if self.faulty("crash"):
            print("CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(3)
        self.end(GENERATING, self.requests)
        if self.faulty("hang"):
            time.sleep(3600)
        with self.computing, torch.no_grad():
            if own.reply is None:  # whoever computes answers others that wait, too
                self.answer(self.batch_with(own))

    def batch_with(self, own):
        """Requests that wait with equal lengths and sampling, this one among them."""
        alike = lambda other: (len(other.prompt), other.params.temperature,  # noqa: E731
                               other.params.top_p, other.params.top_k, other.params.min_p)
        with self.awake:
            others = [each for each in self.waiting if each is not own and alike(each) == alike(own)]
            batch = [own] + others[: ROWS - 1]
            for each in batch:
                self.waiting.remove(each)
        return batch

    def answer(self, batch):
        assert len(batch[0].prompt) < self.options.max_model_len
        draws = [torch.Generator().manual_seed(each.params.seed) for each in batch]
        tokens = torch.tensor([each.prompt for each in batch])
        said = [[] for _ in batch]
        ended = [False] * len(batch)
        longest = [each.params.max_tokens for each in batch]
        while any(not end and len(words) < most
                  for end, words, most in zip(ended, said, longest)):
            logits = vllm_layout.logits_of([w.model for w in self.workers], tokens)
            drawn, log_probs = self.draw(logits, batch[0].params, draws)
            for i, each in enumerate(batch):
                if ended[i] or len(said[i]) == longest[i]:
                    continue
                said[i].append((int(drawn[i]), float(log_probs[i])))
                ended[i] = int(drawn[i]) in each.params.stop_token_ids
            tokens = torch.cat([tokens, drawn[:, None]], 1)
        for i, each in enumerate(batch):
            each.reply = self.completion(said[i], ended[i])

    def draw(self, logits, params, generators):
        raw = torch.log_softmax(logits, -1)
        temperature = params.temperature
        if temperature < 1e-5:
            drawn = logits.argmax(-1)
            return drawn, raw.gather(1, drawn[:, None])[:, 0]
        scaled = logits / temperature
        processed = torch.log_softmax(kept(scaled, params), -1)
        noise = torch.stack([torch.empty_like(processed[0]).exponential_(generator=g)
                             for g in generators])
        drawn = (processed.exp() / noise).argmax(-1)
        mode = {"raw_logprobs": raw, "processed_logprobs": processed}[self.options.logprobs_mode]
        return drawn, mode.gather(1, drawn[:, None])[:, 0]

    def completion(self, said, ended):
        """A CompletionOutput (outputs.py) with FlatLogprobs (logprobs.py)."""
        if self.faulty("short"):
            said, ended = said[: max(1, len(said) // 2)], False
        tokens = [token for token, _ in said]
        if self.faulty("token"):
            tokens[0] = 1 << 20
        values = [value for _, value in said]
        if self.faulty("unknown"):
            values[-1] = float("nan")
        named = list(tokens)
        if self.faulty("name"):
            named[0] = -1
        places = list(range(len(tokens)))
        flat = Named(start_indices=places, end_indices=[at + 1 for at in places], token_ids=named,
                     logprobs=values)
        return Named(token_ids=tokens, logprobs=flat, finish_reason="stop" if ended else "length")


def kept(logits, params):
    """-inf for what min-p, top-k and top-p leave out (v1/sample/logits_processor/builtin.py,
    v1/sample/ops/topk_topp_sampler.py)."""
    if params.min_p > 0:
        chances = logits.softmax(-1)
        least = params.min_p * chances.amax(-1, keepdim=True)
        logits = logits.masked_fill(chances < least, float("-inf"))
    if params.top_k > 0:
        least = logits.topk(min(params.top_k, logits.shape[-1]), -1).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    if params.top_p < 1:
        ordered, places = logits.sort(-1)
        out = ordered.softmax(-1).cumsum(-1) <= 1 - params.top_p
        out[:, -1] = False
        left = ordered.masked_fill(out, float("-inf"))
        logits = torch.empty_like(left).scatter(-1, places, left)
    return logits


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None

    def log_message(self, *_):
        pass

    def reply(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def through_middleware(self, path, text):
        """Whether the middleware has answered, as an ASGI application of its own."""
        sent, handed_on, asked = [], [], []

        async def app(_scope, _receive, _send):
            handed_on.append(True)

        async def receive():
            if asked:  # uvicorn then waits until the client goes
                await asyncio.Event().wait()
            asked.append(True)
            return {"type": "http.request", "body": text, "more_body": False}

        async def send(message):
            sent.append(message)

        module, _, name = self.engine.options.middleware.rpartition(".")
        if not name:
            return False
        middleware = getattr(importlib.import_module(module), name)(app)
        state = Named(engine_client=self.engine)
        scope = {"type": "http", "path": path, "app": Named(state=state)}
        asyncio.run(middleware(scope, receive, send))
        if handed_on:
            return False
        if os.environ.get("FAKE_VLLM_LOG_PROMPTS"):
            body = json.loads(text)
            for _ in body["seeds"]:
                sys.stdout.write(f"prompt {json.dumps(body['token_ids'])}\n")
            sys.stdout.flush()
        self.send_response(sent[0]["status"])
        for key, value in sent[0]["headers"]:
            self.send_header(key.decode(), value.decode())
        self.end_headers()
        self.wfile.write(sent[1]["body"])
        return True

    def do_GET(self):
        path = urllib.parse.urlparse(self.path).path
        if path == "/health":
            return self.reply(200)
        if path == "/version":
            old = FAULT == "version" or FAULT == "aged" and LATE
            return self.reply(200, {"version": "0.8.5" if old else "0.24.0"})
        if path == "/is_sleeping" and os.environ.get("VLLM_SERVER_DEV_MODE") == "1":
            return self.reply(200, {"is_sleeping": bool(self.engine.asleep)})
        return self.reply(404, {"detail": "Not Found"})

    def do_POST(self):
        url = urllib.parse.urlparse(self.path)
        query = urllib.parse.parse_qs(url.query)
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        development = os.environ.get("VLLM_SERVER_DEV_MODE") == "1"
        engine = self.engine
        if self.through_middleware(url.path, text):
            return None
        if not development:
            return self.reply(404, {"detail": "Not Found"})
        if url.path == "/sleep":
            engine.sleep(int(query.get("level", ["1"])[0]))
            self.reply(200)
            return engine.end(["kill_asleep"], engine.sleeps)
        if url.path == "/wake_up":
            engine.wake(query.get("tags"))
            return self.reply(200)
        if url.path == "/reset_prefix_cache":
            return self.reply(200)
        if url.path == "/collective_rpc":
            body = json.loads(text)
            try:
                results = engine.collective_rpc(body["method"], body.get("args", []))
            except AttributeError:  # of the worker: Starlette's reply to an exception
                return self.reply(500, "Internal Server Error")
            return self.reply(200, {"results": results})
        return self.reply(404, {"detail": "Not Found"})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def meet():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1,
                                         timeout=datetime.timedelta(seconds=5))


def main():
    options = arguments()
    stand_for_vllm()
    meet()
    if FAULT == "start" or FAULT == "gone" and LATE:
        print("ValueError: Free memory on device is less than desired", file=sys.stderr)
        sys.exit(1)
    print(f"INFO:     Started server process [{os.getpid()}]", flush=True)
    torch.set_num_threads(1)
    Handler.engine = Engine(options)
    Server((options.host, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
