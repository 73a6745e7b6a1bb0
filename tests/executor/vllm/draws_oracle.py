"""Draws of vLLM's rows with seeds (tessera_vllm/draws.py), by Triton's interpreter on the CPU: against Philox
written by hand, itself held to the vectors that its authors publish (Random123, kat_vectors), and against
the distributions that they are to have.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import math  # noqa: E402
import types  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
from tessera_vllm import draws  # noqa: E402
from tessera_vllm.worker import WeightReceiver  # noqa: E402

LOW = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Philox4x32-10: four words of 32 bits a counter, as uint64."""
    c = [np.asarray(word, np.uint64) for word in counter]
    k = [int(word) for word in key]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [second >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), second & LOW,
             first >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), first & LOW]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def noise_by_hand(seed, position, tokens):
    seed %= 1 << 64
    quads = np.arange(-(-tokens // 4), dtype=np.uint64)
    zeros = np.zeros_like(quads)
    words = philox((quads, zeros + np.uint64(position), zeros, zeros), (seed % 2**32, seed >> 32))
    u = (np.stack(words, 1).reshape(-1)[:tokens].astype(np.float64) + 0.5) / 2**32
    return -np.log1p(-u)


def check_published_vectors():
    ones = 0xFFFFFFFF
    for counter, key, words in (
        ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones,) * 4, (ones,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
         (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ):
        assert [int(word) for word in philox(counter, key)] == list(words), counter


SEEDS = [0, 1, 7 << 40 | 5, 2**62 - 1, -1, 12345678901234567]
POSITIONS = [0, 1, 2, 100, 32767, 2**31 - 1]


def filled(tokens, rows, seeds, positions):
    noise = torch.full((len(positions), tokens), -1.0)
    draws.fill(noise, torch.tensor(rows, dtype=torch.int32), torch.tensor(seeds),
               torch.tensor(positions, dtype=torch.int32))
    return noise.numpy()


def check_row(noise, by_hand):
    """Equal up to 24 bits of u: relative to the noise where that is small and decides draws."""
    most = 3e-6 * by_hand + 2.0**-24 * np.exp(by_hand)
    assert (np.abs(noise - by_hand) <= most)[by_hand < 16].all(), np.abs(noise - by_hand).max()
    assert (noise[by_hand >= 16] > 15).all()


def check_noise():
    """In rows of any place; other rows are untouched."""
    for tokens in (1, 5, 1024, 2051):
        noise = filled(tokens, [4, 0, 2], SEEDS[:3], POSITIONS)
        for row, seed in zip([4, 0, 2], SEEDS):
            check_row(noise[row], noise_by_hand(seed, POSITIONS[row], tokens))
        assert (noise[[1, 3, 5]] == -1).all()
    whole = filled(2051, list(range(6)), SEEDS, POSITIONS)
    for row, (seed, position) in enumerate(zip(SEEDS, POSITIONS)):
        check_row(whole[row], noise_by_hand(seed, position, 2051))
        alone = filled(2051, [0], [seed], [position])
        assert (alone[0] == whole[row]).all(), "a row's noise depends on its place"


def check_exponential():
    """Kolmogorov and Smirnov's distance of 327,680 values, also of the small ones, which decide draws."""
    values = np.sort(filled(20480, list(range(16)), list(range(16)), [9] * 16).reshape(-1))
    values = values.astype(np.float64)
    assert values[0] > 0 and np.isfinite(values[-1])
    for part, law in ((values, -np.expm1(-values)),
                      (values[values < 1e-2], -np.expm1(-values[values < 1e-2]) / -math.expm1(-1e-2))):
        count = len(part)
        steps = np.arange(1, count + 1) / count
        distance = np.abs(steps - law).max() + 1 / count
        assert distance < 1.95 / math.sqrt(count), distance  # passed by 999 of 1,000 fair samples


def vllms_module():
    """What Draws needs of v1/sample/ops/topk_topp_sampler.py."""

    def divided(probs, noise):
        return probs.div_(noise).argmax(dim=-1).view(-1)

    def random_sample(probs, generators, use_fp64_gumbel=False):
        noise = torch.empty_like(probs).exponential_()
        for row, generator in generators.items():
            noise[row].exponential_(generator=generator)
        return divided(probs, noise)

    return types.SimpleNamespace(random_sample=random_sample, sample_with_exponential_noise=divided)


class Runner:
    """As vLLM's: sequences of `lengths`, whose sampler draws from `probs`."""

    def __init__(self, module, lengths, probs):
        self.seq_lens = torch.tensor(list(lengths) + [0] * 3, dtype=torch.int32)
        self.draws = draws.Draws(module)
        self.draws.take_place()
        self.module, self.probs, self.generators = module, probs, {}
        self._sample = self.draws.during(self._sample)

    def _sample(self, logits, _):
        return self.module.random_sample(logits.clone(), self.generators)

    def step(self, seeds):
        """{row: seed}"""
        self.generators = {row: torch.Generator().manual_seed(s) for row, s in seeds.items()}
        return self._sample(self.probs, None).tolist()


def check_argmax():
    """200 sequences draw of 13 tokens as by hand, and 20,000 by hand as the probabilities say: chi-square,
    where 32.9 is passed by 999 of 1,000."""
    rows, many = 200, 20000
    probs = torch.softmax(torch.linspace(-2, 2, 13), 0)
    law = probs.double().numpy()
    by_hand = [int((law / noise_by_hand(at % 7, at, 13)).argmax()) for at in range(many)]
    runner = Runner(vllms_module(), range(rows), probs.expand(rows, -1))
    assert runner.step({row: row % 7 for row in range(rows)}) == by_hand[:rows]
    counts, expected = np.bincount(by_hand, minlength=13), law * many
    assert ((counts - expected) ** 2 / expected).sum() < 32.9, counts


def check_batches():
    """A sequence draws the same among any others, in any row; rows without seeds are vLLM's."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(6, 997, generator=generator)
    probs = logits.softmax(-1)
    expected = [int((row.double().numpy() / noise_by_hand(seed, at, 997)).argmax())
                for row, seed, at in zip(probs, SEEDS, POSITIONS)]
    whole = Runner(vllms_module(), POSITIONS, probs)
    assert whole.step(dict(enumerate(SEEDS))) == expected
    backwards = Runner(vllms_module(), POSITIONS[::-1], probs.flip(0))
    assert backwards.step(dict(enumerate(SEEDS[::-1]))) == expected[::-1]
    for rows in ({1: SEEDS[1], 4: SEEDS[4]}, {4: SEEDS[4]}, {1: SEEDS[4], 4: SEEDS[4]}):
        drawn = whole.step(rows)
        for row in rows:
            own = int((probs[row].double().numpy()
                       / noise_by_hand(rows[row], POSITIONS[row], 997)).argmax())
            assert drawn[row] == own, rows
    drawn = set()
    for torchs in range(8):
        torch.manual_seed(torchs)
        drawn.add(tuple(whole.step({1: SEEDS[1]})))
    assert len(drawn) > 1 and len({each[1] for each in drawn}) == 1


class CudaGenerator:
    """As torch's: its offset is no negative number."""

    device = torch.device("cuda")

    def __init__(self, seed):
        self.seed, self.offset = seed, 0

    def initial_seed(self):
        return self.seed

    def get_offset(self):
        return self.offset

    def set_offset(self, offset):
        assert offset >= 0 and offset % 4 == 0, offset
        self.offset = offset


def check_discarded_draws():
    """Of a prompt that comes in parts: vLLM goes back in the row's generator (gpu_model_runner.py,
    _bookkeeping_sync), which must have somewhere to go, and what is drawn at last is as if it came whole."""
    probs = torch.rand(2, 61).softmax(-1)
    runner = Runner(vllms_module(), [8, 9], probs)
    runner.generators = {1: CudaGenerator(5)}
    for length in (3, 6, 9):
        runner.seq_lens[1] = length
        drawn = runner._sample(probs, None)
        for generator in runner.generators.values():
            generator.set_offset(generator.get_offset() - 4)
    assert int(drawn[1]) == int((probs[1].double().numpy() / noise_by_hand(5, 9, 61)).argmax())


def check_what_stays_vllms():
    probs = torch.rand(2, 31).softmax(-1)
    module = vllms_module()
    vllms = module.random_sample
    ours = Runner(module, [3, 4], probs)
    seeded = lambda: {row: torch.Generator().manual_seed(row) for row in range(2)}  # noqa: E731
    wide = probs.double()
    assert (ours.draws.random_sample(wide.clone(), seeded()) == vllms(wide.clone(), seeded())).all()
    assert (ours.draws.random_sample(probs.clone(), seeded()) == vllms(probs.clone(), seeded())).all(), \
        "outside a step"
    assert ours.draws.positions is None
    make = lambda module, device: type(  # noqa: E731
        "GPUModelRunner", (), {"__module__": module, "device": torch.device(device)})()
    for runner, version, who in (
        (make(draws.RUNNER, "cuda"), "0.25.1", "vLLM 0.25.1, row by row"),
        (make(draws.RUNNER, "cpu"), "0.24.0", "vLLM 0.24.0, row by row"),
        (make(draws.SECOND, "cuda"), "0.24.0", "vLLM, all rows at once"),
        (ours, "0.24.0", "vLLM 0.24.0, row by row"),
    ):
        assert draws.install(runner, version) == who, (version, who)
    speculating = make(draws.RUNNER, "cuda")
    speculating.speculative_config = object()
    assert draws.install(speculating, "0.24.0") == "vLLM 0.24.0, row by row, as it speculates"


class Worker(WeightReceiver):
    rank = 0
    vllm_config = types.SimpleNamespace(parallel_config=types.SimpleNamespace(tensor_parallel_size=1))
    draws = False

    def _tessera_parameters(self):
        return {}

    def _tessera_draws(self):
        self.draws = True
        return "tessera"


def check_a_worker_that_fails_draws_as_the_others():
    worker = Worker()
    assert "error" in worker.tessera_attach("no table")
    assert worker.draws


def main():
    check_published_vectors()
    check_noise()
    check_exponential()
    check_argmax()
    check_batches()
    check_discarded_draws()
    check_what_stays_vllms()
    check_a_worker_that_fails_draws_as_the_others()


main()
