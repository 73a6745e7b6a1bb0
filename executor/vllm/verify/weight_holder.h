// Who holds the weights of a model, and what digests say of any part of them: a folder, which has
// each tensor whole, or a running vLLM server, whose workers have parts.
//
// Digests add up (executor/kernels/weight_digest.h), so that two holders are compared without
// moving weights (compare_holders.h). Elements; boxes are in checkpoint coordinates. A holder
// borrows what it was made of. Free of torch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/dtype.h"
#include "executor/certificate/stored_weights.h"
#include "executor/vllm/server.h"
#include "executor/vllm/verify/server_description.h"

namespace tessera {

/// A row of the table as a holder has it.
struct HeldTensor {
  bool held = false;
  bool fits = false;       // it has the shape that the table says
  std::string shape;       // in words, where it has not
  std::string type;        // our name of a type, or the holder's where we have none
  std::vector<Box> boxes;  // by worker; a folder is one. Empty: that worker holds none of it
};

/// A box of a row, as the worker holds it.
struct HeldPiece {
  int worker = 0, row = 0;
  Box box;
};

struct WeightHolder {
  std::string name;                 // a path or an address
  bool serves = false;              // its workers are told apart
  std::vector<HeldTensor> tensors;  // by row of the table
  std::vector<std::string> others;  // what it holds beside these, by name
  /// A digest for each piece, whose tensors fit and are of floating-point numbers.
  std::function<std::vector<std::uint64_t>(std::span<const HeldPiece>)> digests;
};

/// What a folder holds, rounded to `as` where that is a type.
WeightHolder stored_holder(const StoredWeights& weights, const ParameterTable& table,
                           std::optional<DType> as);

/// What the workers of a server hold, which describes itself so. Digests throw Error(missing) where
/// the server fails. Precondition: vllm_refusals of the model under its workers is empty.
WeightHolder served_holder(VllmServer& server, const ServerDescription& description,
                           const ParameterTable& table, double timeout_s);

}  // namespace tessera
