// A role's state out of a checkpoint, whatever layout has written it.
//
// Every rank reads what it holds and no more: it intersects its boxes with those of the files, and
// checks the digest of each piece that it touches before it takes anything from it. One thread per
// rank, which uses torch's.
#pragma once

#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/checkpoint/state_file.h"
#include "executor/train/trainer.h"

namespace tessera {

/// Fills the trainer's optimizer state and sets the weights from it. Collective over the role's
/// ranks, also where one of them appends Problems: tensors that are missing or do not fit, bytes
/// that are not those that were written. What the state holds then is undefined.
void restore_role(const OpenCheckpoint& checkpoint, const std::string& role, const Weights& weights,
                  Trainer& trainer, Problems& problems);

/// The states of torch's generators of a rank, as tensors of their own; empty where the checkpoint
/// has none of that rank, or none of that kind of device.
std::vector<torch::Tensor> saved_generators(const OpenCheckpoint& checkpoint, int rank,
                                            torch::Device device, Problems& problems);

}  // namespace tessera
