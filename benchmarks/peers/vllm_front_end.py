#!/usr/bin/env python3
"""Processor time that vLLM's front end takes for each token of each sequence.

It is the work of AsyncLLM's output handler and of those who read answers: the engine's message is
decoded, tokens become text, log-probs are noted, the answer so far is made, and its reader wakes. vLLM's own
OutputProcessor does it here, with outputs that no engine made, so that no GPU is needed.

usage: vllm_front_end.py MODEL_FOLDER [--sequences 32 128 256 512] [--tokens 512]
MODEL_FOLDER has a tokenizer of 100,000 tokens or more. Needs vllm 0.24.0 and transformers. Prints JSON lines:
microseconds a sequence and token as the mean of a generation, by what the reader asks for.
"""
import argparse
import asyncio
import json
import time

import numpy
from transformers import AutoTokenizer
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
from vllm.v1.outputs import LogprobsLists
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

PROMPT = list(range(300, 800))
CHUNK = 128  # outputs between which other tasks run (VLLM_V1_OUTPUT_PROC_CHUNK_SIZE)


def output(sequence, token, logprobs, last):
    lists = None
    if logprobs is not None:
        lists = LogprobsLists(numpy.array([[token]]), numpy.array([[-11.7]], dtype=numpy.float32), numpy.array([5]))
    return EngineCoreOutput(request_id=str(sequence), new_token_ids=[int(token)], new_logprobs=lists,
                            finish_reason=1 if last else None)


async def reader(queue):
    while not (queue.get_nowait() or await queue.get()).finished:
        pass


async def seconds(tokenizer, sequences, tokens, logprobs, kind):
    processor = OutputProcessor(tokenizer, log_stats=False)
    encoder, decoder = MsgpackEncoder(), MsgpackDecoder(EngineCoreOutputs)
    draws = numpy.random.default_rng(0)
    readers = []
    for i in range(sequences):
        params = SamplingParams(max_tokens=tokens, ignore_eos=True, logprobs=logprobs)
        params.output_kind = kind
        request = EngineCoreRequest(request_id=str(i), external_req_id=str(i), prompt_token_ids=PROMPT,
                                    mm_features=None, sampling_params=params, pooling_params=None, arrival_time=0.0,
                                    lora_request=None, cache_salt=None, data_parallel_rank=None)
        queue = RequestOutputCollector(kind, str(i))
        processor.add_request(request, None, None, 0, queue)
        readers.append(asyncio.create_task(reader(queue)))
    spent = 0.0
    for step in range(tokens):
        drawn = draws.integers(256, 100_000, sequences)
        message = encoder.encode(EngineCoreOutputs(
            outputs=[output(i, drawn[i], logprobs, step == tokens - 1) for i in range(sequences)]))
        began = time.process_time()
        outputs = decoder.decode(message).outputs
        for first in range(0, sequences, CHUNK):
            processor.process_outputs(outputs[first:first + CHUNK])
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        spent += time.process_time() - began
    await asyncio.gather(*readers)
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sequences", type=int, nargs="+", default=[32, 128, 256, 512])
    parser.add_argument("--tokens", type=int, default=512)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    for logprobs, kind in ((0, RequestOutputKind.CUMULATIVE), (None, RequestOutputKind.CUMULATIVE),
                           (0, RequestOutputKind.FINAL_ONLY)):
        for sequences in options.sequences:
            spent = asyncio.run(seconds(tokenizer, sequences, options.tokens, logprobs, kind))
            print(json.dumps({"sequences": sequences, "tokens": options.tokens, "logprobs": logprobs,
                              "answers": kind.name, "us": round(spent / sequences / options.tokens * 1e6, 1)}),
                  flush=True)


if __name__ == "__main__":
    main()
