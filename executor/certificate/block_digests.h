// Digests of blocks of tensors where a rank holds them, and the search for what differs.
//
// Free functions; memory is read through MemoryOps. No torch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "executor/certificate/certificate.h"
#include "executor/certificate/slice_pieces.h"

namespace tessera {

/// The part of the tensor that the memory holds. Precondition: it holds one.
HeldPart held_part(const HeldWeights& held, int tensor);

/// The pieces of a block that the memory holds whole.
std::vector<kernels::DigestPiece> block_pieces(const WeightCertificate& certificate,
                                               const HeldWeights& held,
                                               const CertificateBlock& block);

/// A digest for each list of pieces. `through`: fp32 elements as this 16-bit type leaves them.
std::vector<std::uint64_t> summed_digests(std::span<const std::vector<kernels::DigestPiece>> lists,
                                          std::int64_t element_bytes, std::optional<DType> through,
                                          MemoryOps& ops);

/// Of blocks, or parts of blocks, that the memory holds whole.
std::vector<std::uint64_t> block_digests(const WeightCertificate& certificate,
                                         const HeldWeights& held,
                                         std::span<const CertificateBlock> blocks,
                                         std::optional<DType> through, MemoryOps& ops);

/// By block of the certificate, on every rank, from those of the blocks that this rank trains, in
/// the order of `trained`. Collective over `host`.
std::vector<std::uint64_t> digests_of_owners(const WeightCertificate& certificate,
                                             std::span<const std::uint64_t> trained,
                                             Communicator& host);

/// Digests of blocks as someone holds them.
using DigestsOf =
    std::function<std::vector<std::uint64_t>(std::span<const CertificateBlock> blocks)>;

/// The first and the last element, as boxes, in which two holders of a block differ: its rows are
/// compared, then the elements of the first and the last that differ. The whole block where none
/// does any more.
struct DifferingEnds {
  Box first, last;
};
DifferingEnds differing_ends(const CertificateBlock& block, const DigestsOf& expected,
                             const DigestsOf& found);

}  // namespace tessera
