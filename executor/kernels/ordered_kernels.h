// The two ways of ordered_attention, which have the same bits: by how many queries a sequence has.
//
// head_dim is 64 or 128. Free of torch and of state.
#pragma once

#include "executor/kernels/ordered_attention.h"

namespace tessera::kernels {

/// Every sequence has one query (or none, which writes nothing).
void attend_one_query(const OrderedShape& shape, const OrderedInput& input, void* stream);

/// Any number of queries.
void attend_many_queries(const OrderedShape& shape, const OrderedInput& input, void* stream);

}  // namespace tessera::kernels
