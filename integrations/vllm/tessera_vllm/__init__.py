"""Tessera's part inside vLLM's workers: weights from the trainer's memory, by slices."""
