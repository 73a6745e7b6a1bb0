// Non-negative linear fits of measured times, judged by held-out samples.
//
// Pure functions. Rows are divided by the measured time, so that relative errors are minimised.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/fit/calibration_fit.h"

namespace tessera {

/// Factors of the coefficients in one sample's time.
using Features = std::vector<double>;
using FeaturesOf = std::function<Features(const CalibrationSample&)>;
using Samples = std::vector<CalibrationSample>;

/// Coefficients of one linear form, each with its relative standard deviation.
struct LinearFit {
  std::vector<double> coefficient, error;
  std::vector<double> covariance;  // of relative deviations, row major
  std::vector<bool> seen;          // of a roofline: samples determine this coefficient

  double predict(const Features& features) const {
    double sum = 0;
    for (std::size_t i = 0; i < features.size(); ++i) sum += coefficient[i] * features[i];
    return sum;
  }
};

/// The form whose relative errors over `samples` are least. Precondition: `samples` is not empty.
LinearFit fit_linear(const Samples& samples, const FeaturesOf& features_of);

/// The value below which a share `q` of `values` lies; 0 without values.
double quantile(std::vector<double> values, double q);

/// Makes a prediction of seconds from samples.
using Fitter = std::function<std::function<double(const CalibrationSample&)>(const Samples&)>;

/// Errors of every fourth sample as a fit of the others predicts it.
FitReport held_out_report(const std::string& what, const Samples& samples, const Fitter& fitter);

/// Least squares with coefficients >= 0 for at most 4 columns (row major `rows`): the best of the
/// unconstrained solutions on all supports that is feasible, which is the exact optimum.
/// `covariance` receives that of the coefficients, row major.
std::vector<double> non_negative_least_squares(std::span<const double> rows, std::size_t columns,
                                               std::span<const double> target,
                                               std::vector<double>& covariance);

}  // namespace tessera
