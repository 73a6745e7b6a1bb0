// What the space of plans leaves out, although an engine may run it: a search's proof says so.
//
// A constant of the program.
#pragma once

#include <string_view>

namespace tessera {

inline constexpr std::string_view kLeftOpen =
    "token limits above 128 Ki a rank or between quarters of a longest sequence; context "
    "parallelism in parts below 2,048 tokens or of no power of two where more replicas divide the "
    "batch, and of no power of two on more than 64 GPUs; long sequences in tp without sequence "
    "parallelism";

}  // namespace tessera
