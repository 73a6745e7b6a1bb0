#!/usr/bin/env python3
"""Times `tessera sweep` on 1,500 rows (aim: < 5 s) and keeps the result.

usage: benchmarks/sweep_rows.py path/to/tessera [-o benchmarks/results/sweep-1500.json]
Rows: dense presets on A100, H100 and H800 clusters, all four kinds; a third leave micro-batch,
recomputation and virtual stages to the planner, a tenth every degree.
"""
import argparse, csv, datetime, itertools, json, os, platform, subprocess, tempfile, time

COLUMNS = ("model,cluster,kind,gpus,tp,pp,dp,cp,ep,vpp,zero,recompute,sequence_parallel,micro_batch,"
           "global_batch,prompt_tokens,response_tokens,gen_tp").split(",")


def rows(count):
    models = ["llama3.1-8b", "qwen2.5-7b", "qwen2.5-32b", "qwen2.5-72b", "llama3.1-70b"]
    clusters = ["a100-64", "h100-64", "h800-64"]
    kinds = ["train", "train", "logprob", "rollout", "iteration"]
    layouts = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2), (4, 4), (8, 4)]
    made = 0
    for n, (layout, model, cluster, kind, gpus, batch) in enumerate(itertools.cycle(
            itertools.product(layouts, models, clusters, kinds, [32, 64], [256, 512]))):
        tp, pp = layout
        free, all_free = n % 3 == 1, n % 10 == 7
        yield dict(zip(COLUMNS, [
            model, cluster, kind, gpus, "" if all_free else tp, "" if all_free else pp,
            "" if all_free else gpus // tp // pp, 1, 1, "" if free else 1, "" if all_free else 1,
            "" if free else "full", 1 if tp > 1 else 0, "" if free else 1, batch, 1024, 1024, min(tp, 8)]))
        made += 1
        if made == count:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tessera")
    parser.add_argument("-n", type=int, default=1500)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in.csv"), os.path.join(folder, "out.csv")
        with open(source, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows(options.n))
        walls, cpus = [], []
        for _ in range(3):
            before, begin = os.times(), time.monotonic()
            subprocess.run([options.tessera, "sweep", source, "-o", target], check=True)
            walls.append(time.monotonic() - begin)
            after = os.times()
            cpus.append(after.children_user + after.children_system
                        - before.children_user - before.children_system)
        with open(target, newline="") as file:
            result = list(csv.DictReader(file))
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                      if line.startswith("model name")), platform.machine())
    report = {
        "command": f"benchmarks/sweep_rows.py tessera -n {options.n}",
        "device": f"{processor}, one thread", "date": datetime.date.today().isoformat(),
        "version": subprocess.run([options.tessera, "--version"], capture_output=True,
                                  text=True, check=True).stdout.strip(),
        "figures": {"rows": len(result), "feasible": sum(r["feasible"] == "1" for r in result),
                    "wall_s": round(min(walls), 3), "cpu_s": round(min(cpus), 3), "aim_s": 5.0},
    }
    print(json.dumps(report, indent=2))
    if options.output:
        with open(options.output, "w") as file:
            file.write(json.dumps(report, indent=2) + "\n")
    if min(cpus) >= 5:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
