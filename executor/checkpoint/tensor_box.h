// Copying a box out of a checkpoint tensor, converted and in the order in which arenas store it.
//
// Pure functions, any thread. Rounding to bf16 and fp16 is to nearest, ties to even; NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/box.h"
#include "executor/checkpoint/safetensors.h"

namespace tessera {

/// Writes the elements of `box` to `destination` as `dtype`, row-major with dim `outer_dim`
/// outermost and the others in their order (ArenaSlot::memory_shape). Floating types convert into
/// each other; an integer tensor is copied only as itself. False with a Problem when the types do
/// not convert or the box lies outside the tensor. `destination` needs no alignment and holds
/// volume(box) elements.
bool read_box(const TensorView& tensor, const Box& box, int outer_dim, void* destination,
              DType dtype, Problems& problems);

/// Converts `count` elements between floating types (or copies equal types); unaligned is fine.
/// Precondition: the types convert.
void convert_elements(const void* source, DType from, void* destination, DType to,
                      std::int64_t count);

}  // namespace tessera
