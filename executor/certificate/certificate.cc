#include "executor/certificate/certificate.h"

#include <algorithm>
#include <cstdio>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/overlay.h"

namespace tessera {
namespace {

bool contains(const std::vector<int>& sorted, int value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

/// Rows of the outer dim that a block of the box may have.
std::int64_t most_rows(const Box& box, int outer_dim, std::int64_t largest) {
  if (box.rank == 0) return 1;
  const std::int64_t rows = box.dims[static_cast<std::size_t>(outer_dim)].size();
  return std::max<std::int64_t>(1, largest / std::max<std::int64_t>(1, volume(box) / rows));
}

/// Cuts the box along the outer dim, in order.
std::vector<Box> cut(const Box& box, int outer_dim, std::int64_t largest) {
  if (box.rank == 0) return {box};
  const Interval rows = box.dims[static_cast<std::size_t>(outer_dim)];
  const std::int64_t step = most_rows(box, outer_dim, largest);
  std::vector<Box> parts;
  for (std::int64_t lo = rows.lo; lo < rows.hi; lo += step) {
    parts.push_back(restricted(box, outer_dim, {lo, std::min(lo + step, rows.hi)}));
  }
  return parts;
}

void add_tensor(const ShardedTensor& tensor, std::int64_t largest, WeightCertificate& made) {
  const int row = static_cast<int>(made.names.size());
  made.names.push_back(tensor.name);
  made.shapes.push_back(tensor.shape);
  const Wanted wanted = wanted_boxes(tensor.destination);
  const Overlay overlay = overlay_of(held_boxes(tensor.source), wanted, tensor.name);
  std::vector<bool> needs(overlay.regions.size());
  for (const Wanted::Entry& entry : wanted.entries) {
    if (entry.rank == made.rank) needs[static_cast<std::size_t>(entry.region)] = true;
  }
  for (std::size_t region = 0; region < overlay.regions.size(); ++region) {
    for (const Overlay::Cell& cell : overlay.regions[region]) {
      const std::vector<int>& holders = overlay.holders[static_cast<std::size_t>(cell.holders)];
      for (const Box& box : cut(cell.box, tensor.outer_dim, largest)) {
        const int block = static_cast<int>(made.blocks.size());
        made.blocks.push_back({.tensor = row, .box = box, .owner = holders.front()});
        if (contains(holders, made.rank)) made.trained.push_back(block);
        if (needs[region]) made.needed.push_back(block);
      }
    }
  }
}

}  // namespace

WeightCertificate make_certificate(std::span<const ShardedTensor> tensors, int rank,
                                   std::int64_t largest) {
  WeightCertificate made{.rank = rank};
  for (const ShardedTensor& tensor : tensors) add_tensor(tensor, largest, made);
  return made;
}

std::string to_string(const CertificateReport& report) {
  char text[200];
  const auto gigabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  if (report.compared == 0) {
    std::snprintf(text, sizeof text,
                  "[Weights] the rollout's %.4g GB lie in the memory that is trained: nothing to "
                  "compare",
                  gigabytes(report.shared));
  } else {
    std::snprintf(text, sizeof text,
                  "[Weights] digests of %.4g GB of the rollout are those of what is trained, %.4g "
                  "GB more lie in its memory, %.3g ms",
                  gigabytes(report.compared), gigabytes(report.shared), report.seconds * 1e3);
  }
  return text;
}

Problems problems_of(const WeightCertificate& certificate, const CertificateReport& report) {
  Problems problems;
  for (const WeightDifference& each : report.differences) {
    const std::int64_t end = each.bytes.offset + each.bytes.bytes;
    problems.push_back({.file = "rank " + std::to_string(each.rank) +
                                (each.trained ? ", trained weights" : ", rollout"),
                        .place = certificate.names[static_cast<std::size_t>(each.tensor)],
                        .found = "bytes " + std::to_string(each.bytes.offset) + " to " +
                                 std::to_string(end - 1) + " of its " +
                                 std::to_string(each.part_bytes) + " differ",
                        .expected = "what rank " + std::to_string(each.owner) + " trains"});
  }
  const std::int64_t told = std::ssize(report.differences);
  if (report.differing > told && !problems.empty()) {
    problems.back().hint =
        "and " + std::to_string(report.differing - told) + " more blocks of weights differ";
  }
  return problems;
}

}  // namespace tessera
