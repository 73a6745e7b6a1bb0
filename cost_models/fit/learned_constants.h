// Constants refitted from whole phases that a run measured, and which of them the phases determine.
//
// The unknowns are natural logarithms x of factors on constants of a calibration. They minimise
//
//   sum_i ((ln f_i(x) - ln y_i) / s_i)^2 + sum_k (x_k / p_k)^2
//
// over measured quantities y with their deviations s, f being the cost model's own prediction and
// p_k how far a constant of its kind may be off before anything is measured (maximum a posteriori
// with normal priors; Gauss-Newton, the curvature at the end is the inverse covariance: Gelman et
// al., Bayesian Data Analysis, ch. 4). Constants enter one at a time, the one that explains most
// first (forward selection), while a constant explains more than chance and the phases leave at
// most half of its prior deviation. Those that do not enter keep their value.
//
// Pure functions. Seconds, bytes; deviations are relative, one standard deviation.
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cost_models/calibration.h"

namespace tessera {

/// One quantity that was measured.
struct MeasuredQuantity {
  std::string run, what;  // "RUN", "update_actor"
  double value = 0;       // above 0
  double deviation = 0;   // of the value, by the run's own spread
};

/// The same quantities under a calibration, in the same order; above 0.
using Predictor = std::function<std::vector<double>(const Calibration&)>;

/// One constant, table or collective's curve that may be scaled.
struct Adjustable {
  std::string name;  // as in constant_names; tables "prefill_ratio", "decode_ratio"
  double prior = 0;  // one standard deviation of ln factor before anything is measured
  std::function<double(const Calibration&)> value;  // 1 of tables and curves as they are
  std::function<void(Calibration&, double factor)> scale;
};

/// Everything of the calibration that seconds depend on: scalars above 0, the ratios of attention,
/// every collective's curve (its time is scaled). Constants of memory are none.
std::vector<Adjustable> adjustables(const Calibration& calibration);

enum class ConstantFate {
  moved,           // the phases determine it, and say another value
  agrees,          // the phases determine it, and say the value that it has
  not_told_apart,  // from one that moved or agrees: together they are determined
  open,            // the phases say too little
  without_effect,  // no phase depends on it
};
std::string_view name_of(ConstantFate fate);

struct LearnedConstant {
  std::string name;
  ConstantFate fate = ConstantFate::open;
  double before = 0, after = 0;  // in its own unit; `after` differs where it moved
  /// One standard deviation relative to `after`: of moved ones what the phases leave, of others
  /// what they would leave.
  double error = 0;
  double prior = 0;    // Adjustable::prior
  std::string beside;  // of not_told_apart: the other constant
  double peak = 0;     // what the device is stated to reach; 0 = nothing is

  /// Moved further than constants of its kind do (three of their deviations): what it stands for is
  /// more likely a cost that the model does not have.
  bool too_far() const;
  /// Moved to a rate that the device does not have: beyond its error the run likely did less than
  /// its plan says.
  bool above_peak() const;
};

struct LearnOptions {
  /// Part of a phase that no constant explains: the model's own error, added to every deviation.
  double model_error = 0.03;
  /// By how much the sum of squares has to fall for a constant to move: 6 is a likelihood ratio of
  /// 20 for one more constant.
  double least_evidence = 6;
  std::stop_token stop{};  // ends it by Stopped (cost_models/documents/stopped.h)
};

struct LearnedConstants {
  Calibration calibration;                     // moved constants are marked as measured
  std::vector<LearnedConstant> constants;      // of adjustables, those that moved first
  double spread_before = 0, spread_after = 0;  // root mean square of (ln f - ln y) / s
};

/// Precondition: `predict` gives one value for each of `measured`. `origin` says which runs. Throws
/// Stopped.
LearnedConstants learn_constants(const Calibration& base,
                                 std::span<const MeasuredQuantity> measured,
                                 const Predictor& predict, const std::string& origin,
                                 const LearnOptions& options = {});

}  // namespace tessera
