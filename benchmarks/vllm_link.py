#!/usr/bin/env python3
"""How fast weights come to a vLLM worker on another GPU (rollout.vllm.weights: messages), without vLLM: the
worker's part of integrations/vllm against a sender of its own, beside single NCCL messages of the same call.

usage: benchmarks/vllm_link.py [--package integrations/vllm] [--repeats 7] [-o FILE]      (two GPUs)

The slices are those that tp 1 training ranks send a worker of tp 1: matrices that a tensor-parallel rank cuts
by its inputs (o_proj, down_proj) lie turned, everything else as the worker has it. Rounds end as
executor/vllm/weight_messages.cc ends them.
"""
import argparse, ctypes, json, os, sys, time
import torch
import torch.multiprocessing as multiprocessing

SHAPES = {  # layers, hidden, columns of the MLP, KV heads x head size, vocabulary, tied
    "qwen2.5-1.5b": (28, 1536, 8960, 256, 151936, True),
    "qwen2.5-7b": (28, 3584, 18944, 512, 152064, False),
}
ROUND_BYTES = 512 << 20


def layout(name):
    """Parameters of the worker and slices in checkpoint order."""
    layers, hidden, ffn, kv, vocab, tied = SHAPES[name]
    parameters, slices, rounds, at, filled = {}, [], [], 0, 0

    def add(parameter, rows, columns, row=0, turned=False):
        nonlocal at, filled
        bytes_ = 2 * rows * columns
        if filled and filled + bytes_ > ROUND_BYTES:
            rounds.append(len(slices))
            filled = 0
        filled += bytes_
        slices.append([parameter, row, row + rows, 0, columns, turned, 0, at, f"t{len(slices)}", 0, columns])
        at += bytes_
        old = parameters.get(parameter, (0, columns))
        parameters[parameter] = (max(old[0], row + rows), columns)

    add("embed", vocab, hidden)
    for i in range(layers):
        p = f"l{i}."
        for row, rows in ((0, hidden), (hidden, kv), (hidden + kv, kv)):
            add(p + "qkv", rows, hidden, row)
            add(p + "qkv_bias", rows, 1, row)
        add(p + "o", hidden, hidden, turned=True)
        add(p + "gate_up", ffn, hidden)
        add(p + "gate_up", ffn, hidden, ffn)
        add(p + "down", hidden, ffn, turned=True)
        add(p + "norm1", hidden, 1)
        add(p + "norm2", hidden, 1)
    add("norm", hidden, 1)
    if not tied:
        add("lm_head", vocab, hidden)
    rounds.append(len(slices))
    table = {"version": 2, "dtype": "bf16", "link": {}, "workers": [{"slices": slices, "rounds": rounds, "zeros": []}]}
    return parameters, table, at


def send(link, messages):
    nccl, stream = link._nccl, ctypes.c_void_p(link.stream.cuda_stream)
    nccl.ncclGroupStart()
    for pointer, bytes_ in messages:
        nccl.ncclSend(ctypes.c_void_p(pointer), ctypes.c_size_t(bytes_), 1, 1, link._comm, stream)
    nccl.ncclGroupEnd()


def one_side(rank, options, unique, barrier, answers):
    sys.path.insert(0, os.path.abspath(options.package))
    from tessera_vllm.links import NcclLink
    from tessera_vllm.slices import SentWeights, Slices
    torch.cuda.set_device(rank)
    link = NcclLink(unique, 2, rank, {0: 0})
    block = torch.empty(16 << 30, dtype=torch.uint8, device="cuda").random_(0, 100) if rank == 0 else None
    whole = torch.empty(4 << 30, dtype=torch.uint8, device="cuda") if rank == 1 else None

    def timed(work):
        barrier.wait()
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    rows = []
    for mib in (16, 128, 512, 4096):
        size = mib << 20
        def work():
            if rank == 0:
                send(link, [(block.data_ptr(), size)])
            else:
                link.receive([(0, whole[:size])])
        times = sorted(timed(work) for _ in range(options.repeats))
        rows.append({"nccl_send_mib": mib, "gb_per_s": round(size / times[len(times) // 2] / 1e9, 1)})
    del whole
    for name in SHAPES:
        parameters, table, total = layout(name)
        if rank == 0:
            rounds, first = [], 0
            for last in table["workers"][0]["rounds"]:
                part = sorted(table["workers"][0]["slices"][first:last], key=lambda s: -(s[2] - s[1]) * (s[4] - s[3]))
                rounds.append([(block.data_ptr() + s[7], 2 * (s[2] - s[1]) * (s[4] - s[3])) for s in part])
                first = last
            work = lambda: [send(link, messages) for messages in rounds]
        else:
            held = {key: torch.zeros(shape if shape[1] > 1 else shape[:1], dtype=torch.bfloat16, device="cuda")
                    for key, shape in parameters.items()}
            way = SentWeights(Slices(json.dumps(table), 0, held), link, 60)
            work = way.bring
        times = sorted(timed(work) for _ in range(options.repeats))
        middle = times[len(times) // 2]
        rows.append({"model": name, "bytes": total, "s": round(middle, 5), "best_s": round(times[0], 5),
                     "gb_per_s": round(total / middle / 1e9, 1)})
        if rank == 1:  # the last turned matrix came whole
            sums = held[f"l{SHAPES[name][0] - 1}.down"].view(torch.int16).sum(dtype=torch.int64).item()
            answers.put(("sum", sums))
        else:
            s = [s for s in table["workers"][0]["slices"] if s[5]][-1]
            part = block[s[7]:s[7] + 2 * (s[2] - s[1]) * (s[4] - s[3])].view(torch.int16)
            answers.put(("sum", part.sum(dtype=torch.int64).item()))
        barrier.wait()
        held = way = None
    answers.put((rank, rows))
    barrier.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="integrations/vllm")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    library = ctypes.CDLL(os.environ.get("VLLM_NCCL_SO_PATH") or "libnccl.so.2")
    unique = ctypes.create_string_buffer(128)
    assert library.ncclGetUniqueId(unique) == 0
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    sides = [context.Process(target=one_side, args=(rank, options, unique.raw.hex(), barrier, answers)) for rank in (0, 1)]
    for side in sides:
        side.start()
    told = [answers.get(timeout=300) for _ in range(2 + 2 * len(SHAPES))]
    for side in sides:
        side.join()
    sums = sorted(value for key, value in told if key == "sum")
    assert sums[::2] == sums[1::2], f"other bytes came: {sums}"
    rows = next(value for key, value in told if key == 1)
    result = {"what": __doc__.split("\n\n")[0], "device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "package": options.package, "rows": rows}
    print(json.dumps(result))
    if options.output:
        json.dump(result, open(options.output, "w"), indent=1)


if __name__ == "__main__":
    main()
