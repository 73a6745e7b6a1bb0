#include "cost_models/fit/linear_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "cost_models/documents/check.h"

namespace tessera {

LinearFit fit_linear(const Samples& samples, const FeaturesOf& features_of) {
  std::vector<double> rows;
  for (const auto& sample : samples) {
    for (const double feature : features_of(sample)) rows.push_back(feature / sample.seconds.value);
  }
  const std::vector<double> target(samples.size(), 1.0);
  LinearFit fit;
  const std::size_t columns = rows.size() / samples.size();
  std::vector<double> covariance;
  fit.coefficient = non_negative_least_squares(rows, columns, target, covariance);
  fit.covariance.assign(columns * columns, 0.0);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double scale = fit.coefficient[i] * fit.coefficient[j];
      if (scale > 0) fit.covariance[i * columns + j] = covariance[i * columns + j] / scale;
    }
    fit.error.push_back(std::sqrt(fit.covariance[i * columns + i]));
  }
  return fit;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

FitReport held_out_report(const std::string& what, const Samples& samples, const Fitter& fitter) {
  FitReport report{what, static_cast<int>(samples.size()), 0, 0, 0};
  Samples used, held;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    (i % 4 == 2 ? held : used).push_back(samples[i]);
  }
  if (held.empty()) return report;
  const auto predict = fitter(used);
  std::vector<double> errors;
  for (const auto& sample : held) {
    errors.push_back(std::abs(predict(sample) / sample.seconds.value - 1));
  }
  report.held_out = static_cast<int>(held.size());
  report.median_error = quantile(errors, 0.5);
  report.p90_error = quantile(errors, 0.9);
  return report;
}

std::vector<double> non_negative_least_squares(std::span<const double> rows, std::size_t columns,
                                               std::span<const double> target,
                                               std::vector<double>& covariances) {
  TESSERA_CHECK(columns >= 1 && columns <= 4 && rows.size() == columns * target.size());
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto count = static_cast<Eigen::Index>(target.size());
  const Eigen::Map<const RowMajor> matrix(rows.data(), count, static_cast<Eigen::Index>(columns));
  const Eigen::Map<const Eigen::VectorXd> wanted(target.data(), count);
  std::vector<double> best(columns, 0.0);
  covariances.assign(columns * columns, 0.0);
  double best_residual = wanted.squaredNorm();
  for (unsigned support = 1; support < (1U << columns); ++support) {
    std::vector<Eigen::Index> chosen;
    Eigen::VectorXd scale(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      if ((support >> c & 1U) != 0) chosen.push_back(static_cast<Eigen::Index>(c));
    }
    Eigen::MatrixXd part(count, static_cast<Eigen::Index>(chosen.size()));
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      const double norm = matrix.col(chosen[c]).norm();
      scale(static_cast<Eigen::Index>(c)) = norm > 0 ? norm : 1;  // columns differ by 1e12
      part.col(static_cast<Eigen::Index>(c)) =
          matrix.col(chosen[c]) / scale(static_cast<Eigen::Index>(c));
    }
    const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(part);
    if (qr.rank() < part.cols()) continue;
    const Eigen::VectorXd solution = qr.solve(wanted);
    if ((solution.array() < 0).any()) continue;
    const double residual = (part * solution - wanted).squaredNorm();
    if (!(residual < best_residual)) continue;
    best_residual = residual;
    const double freedom = std::max<double>(1, static_cast<double>(count - part.cols()));
    const Eigen::MatrixXd covariance = (part.transpose() * part).inverse() * (residual / freedom);
    best.assign(columns, 0.0);
    covariances.assign(columns * columns, 0.0);
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      const auto at = static_cast<Eigen::Index>(c);
      best[static_cast<std::size_t>(chosen[c])] = solution(at) / scale(at);
      for (std::size_t d = 0; d < chosen.size(); ++d) {
        const auto other = static_cast<Eigen::Index>(d);
        covariances[static_cast<std::size_t>(chosen[c]) * columns +
                    static_cast<std::size_t>(chosen[d])] =
            covariance(at, other) / (scale(at) * scale(other));
      }
    }
  }
  return best;
}

}  // namespace tessera
