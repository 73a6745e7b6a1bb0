// From measured samples to a Calibration: non-negative least squares with held-out points.
//
// Pure functions. Every term of a cost is a physical one (a floor, a rate, a ramp), so coefficients
// are constrained to be >= 0; rows are divided by the measured time, so relative errors are what is
// minimised. The roofline's maximum is fitted as a max-affine function: samples are assigned to the
// compute or the memory branch, the branches are fitted, and again until nothing changes (Magnani
// and Boyd 2009). Error bars: covariance of the fit and median error on held-out samples.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/units.h"

namespace tessera {

enum class SampleKind {
  matmul,             // sizes m, n, k
  stream,             // bytes read and written by elementwise operators, how many they are
  dispatch,           // operators of next to no work, forward
  backward_dispatch,  // the same, through a backward pass
  collective,         // bytes of the whole buffer (see wire_bytes)
  host_copy,          // bytes
  decode_step,        // host time of one decode step beside the model
  call,               // host time of one call of a role
  attention,  // forward: sequences x query heads, length, head dim (heads keep their own KV)
  attention_backward,  // the same, backward
  waiting,             // sizes: busy ranks, waiting ranks, seconds of a core that a busy rank used
  sustained,           // sizes m, n, k: products under a load that lasts (see Calibration)
  beside,              // sizes: seconds alone of the kernels, of the collectives beside them
};
std::string_view name_of(SampleKind kind);

/// Seconds: of a device or core that the rank has to itself for compute, as all ranks of the group
/// saw them together for collectives and `waiting`.
struct CalibrationSample {
  SampleKind kind = SampleKind::matmul;
  std::array<double, 3> sizes{};
  Seconds seconds;
  Collective collective = Collective::all_reduce;
  int ranks = 2, nodes = 1;  // of the collective's group
};

/// Circumstances of the measurement.
struct FitContext {
  DType dtype = DType::bf16;  // of the GEMM samples
  int cores = 0;              // that all ranks of a node share; 0 = a device each
  int busy_ranks = 1;         // ranks of a node that measured at once
  std::string origin;         // "tessera calibrate --quick"
  std::string created;        // ISO 8601
};

struct FitReport {
  std::string what;  // "matmul", "all_reduce/4x1"
  int samples = 0, held_out = 0;
  double median_error = 0, p90_error = 0;  // relative, on the held-out samples
};

/// `base` (a shipped calibration) with every constant replaced that the samples determine; those
/// are marked as measured, and the note says whose the others are. Ratio tables of `base` are kept
/// as shapes: rates are fitted under them; attention samples that fill a grid of sizes make a new
/// table. Where kernels do not run behind the host, samples that are mostly dispatch do not count.
/// Kinds with too few samples keep the base's constants and append a Problem.
Calibration fit_calibration(const Calibration& base, std::span<const CalibrationSample> samples,
                            const FitContext& context, std::vector<FitReport>& report,
                            Problems& problems);

}  // namespace tessera
