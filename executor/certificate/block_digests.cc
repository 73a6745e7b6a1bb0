#include "executor/certificate/block_digests.h"

#include "cost_models/documents/check.h"
#include "executor/arena/byte_address.h"

namespace tessera {
namespace {

using kernels::DigestPiece;
using kernels::DigestRead;

DigestRead read_of(std::int64_t element_bytes, std::optional<DType> through) {
  if (element_bytes == 2) return DigestRead::bits16;
  TESSERA_CHECK(element_bytes == 4);
  if (!through) return DigestRead::bits32;
  TESSERA_CHECK(*through == DType::bf16 || *through == DType::fp16);
  return *through == DType::bf16 ? DigestRead::fp32_as_bf16 : DigestRead::fp32_as_fp16;
}

/// The block's indices of a dim one by one.
std::vector<CertificateBlock> each_of(const CertificateBlock& block, int dim) {
  std::vector<CertificateBlock> parts;
  const Interval range = block.box.dims[static_cast<std::size_t>(dim)];
  for (std::int64_t at = range.lo; at < range.hi; ++at) {
    parts.push_back(block);
    parts.back().box = restricted(block.box, dim, {at, at + 1});
  }
  return parts;
}

}  // namespace

HeldPart held_part(const HeldWeights& held, int tensor) {
  const int slot = held.places->slot_of.at(static_cast<std::size_t>(tensor));
  TESSERA_CHECK(slot >= 0);
  const ArenaSlot& place = held.places->slots[static_cast<std::size_t>(slot)];
  return {.box = place.box,
          .outer_dim = place.outer_dim,
          .data = at(held.memory, place.range.offset),
          .element_bytes = held.places->element_bytes};
}

std::vector<DigestPiece> block_pieces(const WeightCertificate& certificate, const HeldWeights& held,
                                      const CertificateBlock& block) {
  const auto tensor = static_cast<std::size_t>(block.tensor);
  return slice_pieces(held_part(held, block.tensor), block.box, certificate.shapes[tensor],
                      digest_seed(certificate.names[tensor]));
}

std::vector<std::uint64_t> summed_digests(std::span<const std::vector<DigestPiece>> lists,
                                          std::int64_t element_bytes, std::optional<DType> through,
                                          MemoryOps& ops) {
  if (lists.empty()) return {};
  std::vector<DigestPiece> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  const std::vector<std::uint64_t> parts = ops.digests(all, read_of(element_bytes, through));
  std::vector<std::uint64_t> sums;
  auto part = parts.begin();
  for (const auto& list : lists) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < list.size(); ++i) sum += *part++;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<std::uint64_t> block_digests(const WeightCertificate& certificate,
                                         const HeldWeights& held,
                                         std::span<const CertificateBlock> blocks,
                                         std::optional<DType> through, MemoryOps& ops) {
  std::vector<std::vector<DigestPiece>> lists;
  lists.reserve(blocks.size());
  for (const CertificateBlock& block : blocks) {
    lists.push_back(block_pieces(certificate, held, block));
  }
  if (lists.empty()) return {};
  return summed_digests(lists, held.places->element_bytes, through, ops);
}

std::vector<std::uint64_t> digests_of_owners(const WeightCertificate& certificate,
                                             std::span<const std::uint64_t> trained,
                                             Communicator& host) {
  std::vector<std::uint64_t> expected(certificate.blocks.size());
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const auto block = static_cast<std::size_t>(certificate.trained[i]);
    if (certificate.blocks[block].owner == certificate.rank) expected[block] = trained[i];
  }
  host.all_reduce(expected.data(), expected.size(), DType::int64, ReduceOp::sum);
  return expected;
}

DifferingEnds differing_ends(const CertificateBlock& block, const DigestsOf& expected,
                             const DigestsOf& found) {
  const auto differing = [&](const std::vector<CertificateBlock>& parts) {
    const std::vector<std::uint64_t> theirs = expected(parts), mine = found(parts);
    std::vector<Box> boxes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (theirs[i] != mine[i]) boxes.push_back(parts[i].box);
    }
    if (boxes.empty()) boxes = {parts.front().box, parts.back().box};
    return boxes;
  };
  DifferingEnds ends{block.box, block.box};
  for (int dim = 0; dim < block.box.rank; ++dim) {
    CertificateBlock first = block, last = block;
    first.box = ends.first;
    last.box = ends.last;
    ends.first = differing(each_of(first, dim)).front();
    ends.last = differing(each_of(last, dim)).back();
  }
  return ends;
}

}  // namespace tessera
