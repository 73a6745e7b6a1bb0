// The part of torch's C++ interface that Tessera calls: tensors, operators, automatic gradients,
// the CUDA device. Include this instead of <torch/torch.h>, which adds modules, data loaders and
// serialisation and takes twice as long to compile. It is the precompiled header of what calls
// torch.
#pragma once

#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>
