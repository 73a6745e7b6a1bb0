"""Writes Parquet files of prompts with pyarrow, as data sets and verl's examples have them.

usage: parquet_oracle.py FOLDER
"""
import decimal
import sys

import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
rows = [
    {"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": f"What is {i}+{i}? \u4f60"}], "ability": "math",
     "reward_model": {"style": "rule", "ground_truth": str(2 * i)}, "extra_info": {"split": "train", "index": i, "score": i / 2, "tags": ["a", None]}}
    for i in range(1000)
]
table = pa.Table.from_pylist(rows)
pq.write_table(table, f"{folder}/train.parquet", row_group_size=64, compression="zstd")
large = table.set_column(0, "data_source", table["data_source"].dictionary_encode())
large = large.set_column(1, "prompt", table["prompt"].cast(pa.large_list(table["prompt"].type.value_type)))
pq.write_table(large.append_column("unused", pa.array([b"\xff"] * 1000)), f"{folder}/large.parquet", compression="snappy")
pq.write_table(pa.table({"data_source": ["d", "d"], "prompt": ["r1=", None], "reward_model": [{"ground_truth": 7}, {"ground_truth": 8}]}),
               f"{folder}/plain.parquet")
pq.write_table(pa.table({"data_source": ["d"], "prompt": ["p"], "reward_model": [{"ground_truth": "t"}], "extra_info": [{"when": b"x"}]}),
               f"{folder}/bytes.parquet")
kinds = {"u64": pa.array([7], pa.uint64()), "when": pa.array([0], pa.timestamp("ms")), "day": pa.array([1], pa.date32()),
         "price": pa.array([decimal.Decimal("1.50")]), "pair": pa.array([[1, 2]], pa.list_(pa.int64(), 2))}
pq.write_table(pa.table({"data_source": ["d"], "prompt": ["p"], "reward_model": [{"ground_truth": "t"}],
                         "extra_info": pa.StructArray.from_arrays(list(kinds.values()), list(kinds))}), f"{folder}/kinds.parquet")
pq.write_table(pa.table({"data_source": ["d", "d"], "prompt": ["p", "p"], "reward_model": [{"ground_truth": "t"}] * 2,
                         "extra_info": [{"x": 1.0, "y": [{"z": 0.0}]}, {"x": float("nan"), "y": [{"z": float("nan")}]}]}), f"{folder}/nan.parquet")
pq.write_table(pa.table({"data_source": ["d", "d"], "prompt": ["p", "p"], "reward_model": [{"ground_truth": "t"}] * 2,
                         "extra_info": [{"y": [{"z": 0.0}]}, {"y": [{"z": 1.0}, {"z": float("-inf")}]}]}), f"{folder}/inf.parquet")
pq.write_table(pa.table({"data_source": ["d", "d"], "prompt": ["p", "p"], "reward_model": [{"ground_truth": "t"}] * 2,
                         "extra_info": pa.StructArray.from_arrays([pa.array([2**63 - 1, 2**64 - 1], pa.uint64())], ["a"])}), f"{folder}/unsigned.parquet")
pq.write_table(large.append_column("prompt", pa.array(["again"] * 1000)), f"{folder}/twice.parquet")
pq.write_table(large.append_column("extra", pa.array(["x"] * 1000)).append_column("extra", pa.array(["y"] * 1000)), f"{folder}/twice_unread.parquet")
twice = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["ground_truth", "ground_truth"])
pq.write_table(pa.table({"data_source": ["d"], "prompt": ["p"], "reward_model": twice}), f"{folder}/twice_inside.parquet")
pq.write_table(large.drop_columns(["reward_model", "data_source"]), f"{folder}/missing.parquet")
pq.write_table(pa.table({"data_source": ["d"] * 300, "prompt": ["p"] * 300, "reward_model": [{"style": "rule"}] * 300}), f"{folder}/no_truth.parquet")
pq.write_table(pa.table({"data_source": pa.array([], pa.string())}), f"{folder}/empty.parquet")
with open(f"{folder}/train.parquet", "rb") as whole, open(f"{folder}/cut.parquet", "wb") as cut:
    cut.write(whole.read()[:5000])
