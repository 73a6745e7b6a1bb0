"""Draws of requests with seeds, all rows of a step by one kernel.

vLLM 0.24.0's sampler divides probabilities by exponential noise and takes the largest quotient; noise of a
row with a seed comes of that row's own torch.Generator, a launch a row (random_sample in
v1/sample/ops/topk_topp_sampler.py). Here the noise of token t, where the sequence has `position` tokens,
is a function of (seed, position, t) alone: word t % 4 of Philox4x32-10 under the key `seed` at the counter
(t / 4, position, 0, 0). Positions are lengths of sequences, which the runner has on its device: a sequence
that is preempted and computed again, or whose prompt comes in chunks or out of a cache, draws the same.

Rows without a seed, types other than float32 and servers that speculate stay vLLM's: its rejection sampler
draws from the same generators, which are left alone there. Its other runner
(v1/worker/gpu/model_runner.py) draws by seed and position itself, and is left alone.
"""

import functools

import torch
import triton
import triton.language as tl

VERSIONS = ("0.24.",)
RUNNER = "vllm.v1.worker.gpu_model_runner"
SECOND = "vllm.v1.worker.gpu.model_runner"
OFFSET = 1 << 40  # of generators that nobody draws from: vLLM goes back by 4 where it discards a draw
QUADS = tl.constexpr(256)  # counters of a program, of four words each


@triton.jit
def _exponential(words):
    """-log(1 - u), u = (words + 1/2) / 2^32; exact also where u is so small that 1 - u rounds to 1."""
    u = words.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    u = tl.minimum(u, 0.99999994)
    rest = 1.0 - u
    return tl.where(rest == 1.0, u, -tl.log(rest) * (u / (1.0 - rest)))


@triton.jit
def _fill(noise, stride, rows, seeds, positions, tokens):
    place = tl.program_id(0)
    row = tl.load(rows + place).to(tl.int64)
    quads = tl.program_id(1) * QUADS + tl.arange(0, QUADS)
    zeros = quads * 0
    position = tl.load(positions + row).to(tl.int32) + zeros
    a, b, c, d = tl.philox(tl.load(seeds + place), quads, position, zeros, zeros)
    words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    token = tl.program_id(1) * (4 * QUADS) + tl.arange(0, 4 * QUADS)
    tl.store(noise + row * stride + token, _exponential(words), mask=token < tokens)


def fill(noise, rows, seeds, positions):
    """Noise (fp32, a row a sequence) of the rows named by `rows` (int32), whose seeds are `seeds` (int64,
    in the order of `rows`), at `positions` (a number for each row of `noise`)."""
    tokens = noise.shape[1]
    grid = (rows.numel(), triton.cdiv(tokens, 4 * QUADS.value))
    _fill[grid](noise, noise.stride(0), rows, seeds, positions, tokens)


class SeededRows:
    """Which rows have seeds, on the device; sent again only where they have changed."""

    def __init__(self):
        self._held, self._rows, self._seeds = None, None, None

    def on(self, device, generators):
        """(rows, seeds) of {row: generator}."""
        now = list(generators.items())
        if self._held != now:
            seeds = [_signed(generator.initial_seed()) for _, generator in now]
            self._rows = _sent([row for row, _ in now], torch.int32, device)
            self._seeds = _sent(seeds, torch.int64, device)
            for _, generator in now:
                if generator.device.type == "cuda":
                    generator.set_offset(OFFSET)
            self._held = now
        return self._rows, self._seeds


def _signed(seed):
    return seed - (1 << 64) if seed >> 63 else seed


def _sent(values, dtype, device):
    pinned = torch.tensor(values, dtype=dtype, pin_memory=device.type == "cuda")
    return pinned.to(device, non_blocking=True)


class Draws:
    """What stands for random_sample in `module`, vLLM's topk_topp_sampler."""

    def __init__(self, module):
        self._module, self._vllms = module, module.random_sample
        self._seeded = SeededRows()
        self.positions = None  # of the step that is being drawn

    def take_place(self):
        self._module.random_sample = self.random_sample

    def random_sample(self, probs, generators, use_fp64_gumbel=False):
        positions = self.positions
        ours = generators and positions is not None and probs.dtype == torch.float32
        if not ours or use_fp64_gumbel or len(positions) != len(probs):
            return self._vllms(probs, generators, use_fp64_gumbel)
        noise = torch.empty_like(probs)
        if len(generators) != len(probs):
            noise.exponential_()
        fill(noise, *self._seeded.on(probs.device, generators), positions)
        return self._module.sample_with_exponential_noise(probs, noise)

    def during(self, sample):
        """A runner's _sample, with the positions of its step known while it lasts."""

        @functools.wraps(sample)
        def known(logits, spec_decode_metadata):
            if logits is not None:
                self.positions = sample.__self__.seq_lens[: logits.shape[0]]
            try:
                return sample(logits, spec_decode_metadata)
            finally:
                self.positions = None

        return known


def install(runner, version):
    """Draws of a worker's runner as this module does; says who draws. What is not known is left as vLLM
    has it."""
    kind = type(runner).__module__
    if kind == SECOND:
        return "vLLM, all rows at once"
    if kind != RUNNER or not version.startswith(VERSIONS) or runner.device.type != "cuda":
        return f"vLLM {version}, row by row"
    if getattr(runner, "speculative_config", None) is not None:
        return f"vLLM {version}, row by row, as it speculates"
    if not hasattr(runner, "tessera_draws"):
        from vllm.v1.sample.ops import topk_topp_sampler

        _put(runner, Draws(topk_topp_sampler))
    return "tessera, all rows at once"


def _put(runner, draws):
    first = torch.zeros(1, dtype=torch.int32, device=runner.device)
    noise = torch.empty(1, runner.input_batch.vocab_size, device=runner.device)
    fill(noise, first, first.long(), first)  # compiled before the first step
    runner._sample = draws.during(runner._sample)
    draws.take_place()
    runner.tessera_draws = draws
