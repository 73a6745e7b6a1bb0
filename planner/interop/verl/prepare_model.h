// A script beside exported files: it makes the folder of a model whose weights are quantized, as
// verl's trainers take it.
//
// A text of static lifetime.
#pragma once

#include <string_view>

namespace tessera {

inline constexpr std::string_view kPrepareModel = "prepare_model.py";

/// What verl's example for DeepSeek-V3 asks to be done by hand: config.json without
/// quantization_config, so that rollouts hold the type that the trainer sends, and without layers
/// of multi-token prediction where nobody uses them; everything else of the folder is linked.
inline constexpr std::string_view kPrepareModelText = R"(#!/usr/bin/env python3
"""Makes the folder of a model as verl's trainers take it.

usage: prepare_model.py MODEL NEW_FOLDER [--with-mtp]
  MODEL  a folder, or a name on the Hugging Face hub

config.json is written without quantization_config (rollouts then hold the type that the trainer
sends) and without layers of multi-token prediction unless --with-mtp says so; all other files are
links.
"""
import json
import os
import sys


def prepare(model, made, with_mtp):
    if not os.path.isdir(model):
        from huggingface_hub import snapshot_download

        model = snapshot_download(model)
    os.makedirs(made)
    for name in sorted(os.listdir(model)):
        if name != "config.json":
            os.symlink(os.path.realpath(os.path.join(model, name)), os.path.join(made, name))
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config.pop("quantization_config", None)
    if "num_nextn_predict_layers" in config and not with_mtp:
        config["num_nextn_predict_layers"] = 0
    with open(os.path.join(made, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--with-mtp"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    prepare(*arguments, "--with-mtp" in sys.argv)
)";

}  // namespace tessera
