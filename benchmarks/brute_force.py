#!/usr/bin/env python3
"""Holds `tessera plan` to a search that knows nothing of it.

Small problems (one model, one GPU) with fixed sizes of batches. Every way to run a role
that the command line takes is asked for one by one, under a memory limit that all of them keep, and
only the seconds of its calls and the bytes of its fullest rank are read from the answer. From these
the best plan is put together here: every placement, every number of GPUs, every choice of each role
beside every other, what fits by sums of bytes, what it takes by the longest path of the schedule.
`tessera plan` has to find the same step under several memory limits. What is compared are values, so
ties may fall differently.

usage: benchmarks/brute_force.py build/release/cli/tessera [-o FILE] [--only NAME]
Exit code: 0 when all agree, 1 when not.
"""

import argparse
import datetime
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

GIB = 1 << 30
SAME = 1e-9
ALL_FIT = 1_000_000  # GiB of a device: everything fits

CLUSTER = """version: 1
name: small
gpu: H100-SXM-80GB
memory_gib: {memory}
peak_tflops_bf16: 989
hbm_gb_s: 3350
gpus_per_node: {gpus}
nodes: {nodes}
intra_node: {{link: NVLink4, gb_s_per_gpu_one_way: 450}}
inter_node: {{fabric: InfiniBand NDR, nics_per_node: {gpus}, gbit_s_per_nic: 400}}
"""

# name: model, nodes, GPUs of a node, engine, workload, tokens of a micro-batch, sequences at once
GRPO = ("algorithm: grpo\nkl: loss\nprompts_per_step: 16\nsamples_per_prompt: 4\n"
        "prompt_tokens: 256\nmini_batches: 2\n")
EQUAL = "response_tokens: {mean: 256, max: 256}\n"
SPREAD = "response_tokens: {mean: 200, cv: 0.5, max: 512}\n"
PROBLEMS = {
    "tessera": ("qwen2.5-1.5b", 1, 1, "tessera", GRPO + EQUAL, 4096, 32),
    "tessera-spread": ("llama3.2-1b", 1, 1, "tessera", GRPO + SPREAD, 4096, 16),
    "verl": ("qwen2.5-1.5b", 1, 1, "verl", GRPO + EQUAL, 4096, 32),
}


class Tool:
    """`tessera plan` of one problem."""

    def __init__(self, program, folder, problem):
        model, nodes, per_node, engine, workload, self.tokens, self.slots = problem
        self.gpus = nodes * per_node
        self.program, self.folder, self.asked = program, folder, 0
        cluster, load = folder / "cluster.yaml", folder / "workload.yaml"
        cluster.write_text(CLUSTER.format(gpus=per_node, nodes=nodes, memory=80))
        load.write_text("version: 1\n" + workload)
        self.words = [str(program), "plan", "--model", model, "--cluster", str(cluster),
                      "--workload", str(load), "--calibration", "h100", "--engine", engine]

    def plan(self, settings, limit):
        """The plan, or None where there is none."""
        self.asked += 1
        out = self.folder / "plan.json"
        out.unlink(missing_ok=True)
        words = self.words + ["--memory-limit-gib", str(limit), "-o", str(out)]
        if settings:
            words += ["--fix", *settings]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 2, 64, 65):
            raise RuntimeError(f"exit code {done.returncode}: {' '.join(words)}\n{done.stderr}")
        return json.loads(out.read_text()) if done.returncode == 0 else None


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def trained_layouts(gpus):
    """Degrees and shards of a role that is no rollout, sensible or not."""
    for tp, pp in itertools.product(divisors(gpus), repeat=2):
        if gpus % (tp * pp):
            continue
        dp = gpus // tp // pp
        for scattered in (0, 1) if tp > 1 else (0,):
            for vpp in (1, 2, 4, 7, 8) if pp > 1 else (1,):
                for head in (0, 1, 2, 3, 4) if pp > 1 and vpp == 1 else (0,):
                    for zero in (0, 1, 2, 3):
                        for shard in divisors(dp) if zero == 3 else (1,):
                            if zero == 3 and shard == 1:
                                continue
                            yield {"gpus": gpus, "tp": tp, "cp": 1, "pp": pp, "dp": dp, "vpp": vpp,
                                   "head_layers": head, "zero": zero, "dp_shard": shard,
                                   "sequence_parallel": scattered}


def ways(role, gpus):
    """All ways to run a role on so many GPUs, as fields."""
    if role == "rollout":
        for tp, pp in itertools.product(divisors(gpus), repeat=2):
            if gpus % (tp * pp) == 0:
                for offload in ("none", "all"):
                    yield {"gpus": gpus, "tp": tp, "pp": pp, "dp": gpus // tp // pp,
                           "offload": offload}
        return
    for layout in trained_layouts(gpus):
        if role == "reference":
            if layout["zero"] in (0, 3):
                for offload in ("none", "all"):
                    yield layout | {"offload": offload}
            continue
        for recompute in ("none", "selective", "full"):
            for offload in ("none", "optimizer", "all"):
                yield layout | {"recompute": recompute, "offload": offload}


def words_of(role, fields):
    return [f"{role}.{field}={value}" for field, value in fields.items()]


def plain(role, gpus):
    """A way to run a role beside the one that is asked about."""
    return words_of(role, {"gpus": gpus, "tp": 1, "pp": 1, "dp": gpus})


def degrees(fields):
    """What the seconds of a reshard depend on."""
    return tuple(sorted((key, value) for key, value in fields.items()
                        if key not in ("recompute", "offload")))


def memory_of(plan, role):
    found = next(each for each in plan["roles"] if each["role"] == role)
    return {phase: sum(classes.values()) for phase, classes in found["memory"].items()}


class Prices:
    """What every way to run a role takes and needs, asked one by one."""

    def __init__(self, tool):
        self.tool = tool
        first = tool.plan([], ALL_FIT)
        self.schedule = [(call["call"], call["role"], call["after"])
                         for call in first["schedule"]]
        self.roles = [each["role"] for each in first["roles"]]
        self.limits = [f"{role}.tokens={tool.tokens}" for role in self.roles if role != "rollout"]
        self.limits.append(f"rollout.max_sequences={tool.slots}")
        self.reserve = None
        self.ways = {(role, gpus): [] for role in self.roles for gpus in divisors(tool.gpus)}
        for role, gpus in self.ways:
            for fields in ways(role, gpus):
                self.price(role, gpus, fields)
        self.reshards = {}

    def calls_of(self, role):
        return [call for call, runs, _ in self.schedule if runs == role and call != "reshard"]

    def price(self, role, gpus, fields):
        words = self.limits + ["placement=colocated"] + words_of(role, fields)
        for other in self.roles:
            if other != role:
                words += plain(other, gpus)
        plan = self.tool.plan(words, ALL_FIT)
        if plan is None:
            return
        seconds = plan["prediction"]["phases_s"]
        self.ways[role, gpus].append(
            {"role": role, "fields": fields, "memory": memory_of(plan, role),
             "seconds": {call: seconds[call] for call in self.calls_of(role)}})
        # Calls without a model are the same in every plan.
        self.fixed = {call: seconds[call] for call, _, _ in self.schedule
                      if call not in ("reshard",) and
                      not any(call in self.calls_of(each) for each in self.roles)}
        if len(self.roles) == len(plan["roles"]) and self.reserve is None:
            together = max(sum(memory_of(plan, each).get(phase, 0) for each in self.roles)
                           for phase in memory_of(plan, self.roles[0]))
            self.reserve = plan["prediction"]["peak_bytes"] - together

    def reshard(self, actor, rollout, apart):
        key = (degrees(actor["fields"]), degrees(rollout["fields"]), apart)
        if key not in self.reshards:
            words = self.limits + words_of("actor", actor["fields"])
            words += words_of("rollout", rollout["fields"])
            for other in self.roles:
                if other not in ("actor", "rollout"):
                    words += plain(other, actor["fields"]["gpus"])
            trained = "+".join(role for role in self.roles if role != "rollout")
            words.append(f"placement={trained} | rollout" if apart else "placement=colocated")
            plan = self.tool.plan(words, ALL_FIT)
            self.reshards[key] = plan["prediction"]["phases_s"]["reshard"] if plan else None
        return self.reshards[key]


def partitions(items):
    """All ways to part a list into blocks."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for index, block in enumerate(rest):
            yield [*rest[:index], [items[0], *block], *rest[index + 1:]]


def placements(roles):
    """Blocks of roles: a rollout is beside the actor, or alone."""
    for blocks in partitions(roles):
        own = next((block for block in blocks if "rollout" in block), None)
        if own is None or own == ["rollout"] or "actor" in own:
            yield blocks


def step_seconds(prices, blocks, seconds):
    """Of a schedule whose calls wait for what they need and for their GPUs."""
    block_of = {role: number for number, block in enumerate(blocks) for role in block}
    apart = ["rollout"] in blocks
    ends, free = {}, [0.0] * len(blocks)
    for call, role, after in prices.schedule:
        if call == "reshard" and apart:
            role = "rollout"
        block = block_of.get(role, block_of.get("actor"))
        start = max([free[block]] + [ends[each] for each in after if each in ends])
        ends[call] = free[block] = start + seconds[call]
    return max(ends.values())


def fits(prices, chosen, limit):
    phases = set().union(*(way["memory"] for way in chosen))
    return all(prices.reserve + sum(way["memory"].get(phase, 0) for way in chosen) <= limit
               for phase in phases)


def best_step(prices, limit):
    """The least step of all plans that fit into so many bytes, and the plan."""
    best = (float("inf"), None)
    gpus = prices.tool.gpus
    for blocks in placements(prices.roles):
        for sizes in itertools.product(divisors(gpus), repeat=len(blocks)):
            if sum(sizes) > gpus:
                continue
            of_block = []
            for block, size in zip(blocks, sizes):
                of_block.append([chosen for chosen in itertools.product(
                    *(prices.ways[role, size] for role in block)) if fits(prices, chosen, limit)])
            for choice in itertools.product(*of_block):
                found = priced_choice(prices, blocks, choice, best[0])
                if found < best[0]:
                    best = (found, [[(way["role"], way["fields"]) for way in chosen]
                                    for chosen in choice])
    return best


def priced_choice(prices, blocks, choice, than):
    """The step of a choice, where it may be less than `than`."""
    seconds = dict(prices.fixed) | {"reshard": 0.0}
    by_role = {}
    for chosen in choice:
        for way in chosen:
            by_role[way["role"]] = way
            seconds |= way["seconds"]
    least = step_seconds(prices, blocks, seconds)
    if least >= than or "rollout" not in by_role:
        return least
    moved = prices.reshard(by_role["actor"], by_role["rollout"], ["rollout"] in blocks)
    if moved is None:
        return float("inf")
    return step_seconds(prices, blocks, seconds | {"reshard": moved})


def compared(prices, limit):
    """One limit of memory: what the tool says, and what is found here."""
    plan = prices.tool.plan(prices.limits, limit)
    least, choice = best_step(prices, int(limit * GIB))
    said = plan["prediction"]["step_s"] if plan else float("inf")
    equal = said == least or abs(said - least) <= SAME * least
    row = {"memory_gib": limit, "planned_s": said if plan else None,
           "least_s": least if choice else None, "equal": equal}
    if not equal:
        row["found"] = choice
    return row


def checked(program, name, limits):
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, pathlib.Path(folder), PROBLEMS[name])
        prices = Prices(tool)
        rows = [compared(prices, limit) for limit in limits]
        return {"problem": name, "asked": tool.asked,
                "ways": {f"{role} on {gpus}": len(found)
                         for (role, gpus), found in prices.ways.items()}, "limits": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="a tessera program")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="where the figures go")
    parser.add_argument("--only", default="", help="the problem with this name")
    options = parser.parse_args()
    limits = (200, 70, 40, 30, 24, 20, 16, 12, 8)
    problems = [checked(options.program.resolve(), name, limits) for name in PROBLEMS
                if options.only in ("", name)]
    wrong = [(each["problem"], row) for each in problems for row in each["limits"]
             if not row["equal"]]
    for problem, row in wrong:
        print(f"DIFFERENT {problem}: {json.dumps(row)}")
    print(f"{sum(each['asked'] for each in problems)} plans asked for, "
          f"{sum(len(each['limits']) for each in problems)} problems, {len(wrong)} different")
    if options.output:
        figures = {"command": "benchmarks/brute_force.py build/dev/cli/tessera",
                   "date": datetime.date.today().isoformat(), "problems": problems}
        options.output.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
