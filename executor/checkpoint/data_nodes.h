// CheckpointData in JSON: a part of a checkpoint's manifest and of an export's origin.
//
// Pure functions.
#pragma once

#include "executor/checkpoint/run_checkpoint.h"

namespace tessera {

struct Node;
class ObjectReader;

Node node_of_data(const CheckpointData& data);
/// The object "data" of `root`.
CheckpointData read_data(ObjectReader& root);

}  // namespace tessera
