#include "cost_models/fit/learned_constants.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "cost_models/documents/check.h"
#include "cost_models/documents/stopped.h"

namespace tessera {
namespace {

constexpr double kStep = 0.02;       // of ln factor, for derivatives
constexpr double kDetermined = 0.5;  // part of the prior deviation that may be left
constexpr double kNoEffect = 0.005;  // d ln(phase) / d ln(constant) below which there is none
constexpr int kRounds = 8;           // of Gauss-Newton
constexpr double kFarthest = 3;      // |ln factor| is held within it
constexpr int kMostMoved = 12;

using Indices = std::vector<std::size_t>;

// The least sum of squares over some constants, linearised.
struct Solved {
  Eigen::VectorXd x;           // ln factors, in the order of the constants that were asked for
  Eigen::MatrixXd covariance;  // of them
  double objective = 0;
};

// State of one call of learn_constants.
class Learning {
 public:
  Learning(const Calibration& base, std::span<const MeasuredQuantity> measured,
           const Predictor& predict, const LearnOptions& options)
      : base_(base), predict_(predict), options_(options), all_(adjustables(base)) {
    const auto count = static_cast<Eigen::Index>(measured.size());
    wanted_.resize(count);
    weight_.resize(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const MeasuredQuantity& each = measured[static_cast<std::size_t>(i)];
      TESSERA_CHECK(each.value > 0);
      wanted_(i) = std::log(each.value);
      weight_(i) = 1 / std::hypot(each.deviation, options.model_error);
    }
    x_ = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(all_.size()));
    linearise(every());
  }

  void learn() {
    before_ = misfit();
    for (int round = 0; round < kMostMoved; ++round) {
      const std::optional<Indices> next = most_telling();
      if (!next) break;
      moved_ = *next;
      settle();
    }
    drop_superfluous();
    free_together();
  }

  LearnedConstants result(const std::string& origin) const {
    LearnedConstants result;
    result.calibration = learned_calibration(origin);
    for (const std::size_t k : moved_) result.constants.push_back(verdict_of(k));
    for (const std::size_t k : every()) {
      if (!is_moved(k)) result.constants.push_back(verdict_of(k));
    }
    result.spread_before = before_;
    result.spread_after = misfit();
    return result;
  }

 private:
  Indices every() const {
    Indices indices(all_.size());
    for (std::size_t k = 0; k < indices.size(); ++k) indices[k] = k;
    return indices;
  }

  bool is_moved(std::size_t k) const {
    return std::find(moved_.begin(), moved_.end(), k) != moved_.end();
  }

  Calibration at(const Eigen::VectorXd& x) const {
    Calibration calibration = base_;
    for (std::size_t k = 0; k < all_.size(); ++k) {
      const double factor = std::exp(x(static_cast<Eigen::Index>(k)));
      if (factor != 1) all_[k].scale(calibration, factor);
    }
    return calibration;
  }

  Eigen::VectorXd logarithms(const Eigen::VectorXd& x) const {
    end_if_stopped(options_.stop);
    const std::vector<double> values = predict_(at(x));
    TESSERA_CHECK(values.size() == static_cast<std::size_t>(wanted_.size()));
    Eigen::VectorXd logs(wanted_.size());
    for (Eigen::Index i = 0; i < logs.size(); ++i) {
      logs(i) = std::log(std::max(values[static_cast<std::size_t>(i)], 1e-12));
    }
    return logs;
  }

  // Residuals and derivatives by these constants at x_, both over the deviations.
  void linearise(const Indices& of) {
    const Eigen::VectorXd here = logarithms(x_);
    residual_ = (wanted_ - here).cwiseProduct(weight_);
    if (slope_.cols() == 0) slope_ = Eigen::MatrixXd::Zero(wanted_.size(), x_.size());
    for (const std::size_t k : of) {
      const auto column = static_cast<Eigen::Index>(k);
      Eigen::VectorXd beside = x_;
      beside(column) += kStep;
      slope_.col(column) = (logarithms(beside) - here).cwiseProduct(weight_) / kStep;
    }
  }

  Solved solve(const Indices& of) const {
    const auto size = static_cast<Eigen::Index>(of.size());
    Eigen::MatrixXd slope(wanted_.size(), size);
    Eigen::VectorXd priors(size);
    for (Eigen::Index c = 0; c < size; ++c) {
      const std::size_t k = of[static_cast<std::size_t>(c)];
      slope.col(c) = slope_.col(static_cast<Eigen::Index>(k));
      priors(c) = 1 / (all_[k].prior * all_[k].prior);
    }
    // Residuals where nothing has moved: constants that are not asked for stay at the base.
    const Eigen::VectorXd target = residual_ + slope_ * x_;
    Solved solved;
    if (size == 0) {
      solved.objective = target.squaredNorm();
      return solved;
    }
    Eigen::MatrixXd curvature = slope.transpose() * slope;
    curvature.diagonal() += priors;
    solved.covariance = curvature.inverse();
    solved.x = solved.covariance * (slope.transpose() * target);
    solved.objective = (target - slope * solved.x).squaredNorm() +
                       (solved.x.array().square() * priors.array()).sum();
    return solved;
  }

  Indices determined_of(const Solved& solved, const Indices& of) const {
    Indices known;
    for (std::size_t c = 0; c < of.size(); ++c) {
      const auto i = static_cast<Eigen::Index>(c);
      if (std::sqrt(solved.covariance(i, i)) <= kDetermined * all_[of[c]].prior) {
        known.push_back(of[c]);
      }
    }
    return known;
  }

  bool determined(const Solved& solved, const Indices& of) const {
    return determined_of(solved, of).size() == of.size();
  }

  // The constants that move with the one more that explains most. It takes the place of those that
  // are not determined beside it.
  std::optional<Indices> most_telling() const {
    const double now = solve(moved_).objective;
    std::optional<Indices> best;
    double most = options_.least_evidence;
    for (const std::size_t k : every()) {
      if (is_moved(k)) continue;
      Indices with = moved_;
      with.push_back(k);
      Solved solved = solve(with);
      if (now - solved.objective <= most) continue;
      if (!determined(solved, with)) {
        with = determined_of(solved, with);
        if (std::find(with.begin(), with.end(), k) == with.end()) continue;
        solved = solve(with);
        if (now - solved.objective <= most || !determined(solved, with)) continue;
      }
      most = now - solved.objective;
      best = with;
    }
    return best;
  }

  // Gauss-Newton over the constants that move, then every derivative at the new place.
  void settle() {
    for (int round = 0; round < kRounds; ++round) {
      const Solved solved = solve(moved_);
      double change = 0;
      x_.setZero();
      for (std::size_t c = 0; c < moved_.size(); ++c) {
        const double to = std::clamp(solved.x(static_cast<Eigen::Index>(c)), -kFarthest, kFarthest);
        change = std::max(change, std::abs(to - last_of(moved_[c])));
        x_(static_cast<Eigen::Index>(moved_[c])) = to;
      }
      last_ = x_;
      linearise(moved_);
      if (change < 1e-4) break;
    }
    linearise(every());
  }

  double last_of(std::size_t k) const {
    return last_.size() == 0 ? 0 : last_(static_cast<Eigen::Index>(k));
  }

  // A constant that entered early may be explained by those that entered after it.
  void drop_superfluous() {
    for (std::size_t c = 0; c < moved_.size() && moved_.size() > 1;) {
      Indices without = moved_;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(c));
      if (solve(without).objective - solve(moved_).objective >= options_.least_evidence) {
        ++c;
        continue;
      }
      moved_ = without;
      settle();
      c = 0;
    }
  }

  // Constants that stay at the base may be off by what their evidence is short of: error bars of
  // those that moved count them as free, as many as the phases determine together.
  void free_together() {
    free_ = moved_;
    for (const std::size_t k : every()) {
      if (is_moved(k)) continue;
      free_.push_back(k);
      if (!determined(solve(free_), free_)) free_.pop_back();
    }
  }

  double misfit() const {
    return wanted_.size() == 0
               ? 0
               : std::sqrt(residual_.squaredNorm() / static_cast<double>(wanted_.size()));
  }

  // Where residuals are larger than their deviations, those were too small (Birge's ratio).
  double scale() const {
    const double freedom =
        std::max(1.0, static_cast<double>(wanted_.size()) - static_cast<double>(moved_.size()));
    return std::max(1.0, std::sqrt(residual_.squaredNorm() / freedom));
  }

  LearnedConstant verdict_of(std::size_t k) const {
    LearnedConstant verdict{.name = all_[k].name, .prior = all_[k].prior};
    verdict.before = verdict.after = all_[k].value(base_);
    Indices with = free_;
    if (std::find(with.begin(), with.end(), k) == with.end()) {
      with = moved_;
      with.push_back(k);
    }
    const auto place = std::find(with.begin(), with.end(), k) - with.begin();
    const Solved solved = solve(with);
    const double left = std::sqrt(solved.covariance(place, place));
    verdict.error = left * scale();
    if (is_moved(k)) {
      verdict.fate = ConstantFate::moved;
      verdict.after *= std::exp(x_(static_cast<Eigen::Index>(k)));
      return verdict;
    }
    const Eigen::VectorXd plain = slope_.col(static_cast<Eigen::Index>(k)).cwiseQuotient(weight_);
    const double alone = solve({k}).covariance(0, 0);
    if (plain.size() == 0 || plain.cwiseAbs().maxCoeff() < kNoEffect) {
      verdict.fate = ConstantFate::without_effect;
    } else if (left <= kDetermined * all_[k].prior) {
      verdict.fate = ConstantFate::agrees;
    } else if (std::sqrt(alone) <= kDetermined * all_[k].prior && !moved_.empty()) {
      verdict.fate = ConstantFate::not_told_apart;
      verdict.beside = all_[nearest_moved(k)].name;
    }
    return verdict;
  }

  std::size_t nearest_moved(std::size_t k) const {
    const auto likeness = [&](std::size_t other) {
      const auto a = slope_.col(static_cast<Eigen::Index>(k));
      const auto b = slope_.col(static_cast<Eigen::Index>(other));
      const double norms = a.norm() * b.norm();
      return norms > 0 ? std::abs(a.dot(b)) / norms : 0;
    };
    return *std::max_element(moved_.begin(), moved_.end(), [&](std::size_t a, std::size_t b) {
      return likeness(a) < likeness(b);
    });
  }

  Calibration learned_calibration(const std::string& origin) const {
    Calibration calibration = at(x_);
    if (moved_.empty()) return calibration;
    const Solved solved = solve(free_);  // which begin with those that moved
    const double squared = scale() * scale();
    FitCovariance kept;
    Indices of;
    for (std::size_t c = 0; c < moved_.size(); ++c) {
      const auto i = static_cast<Eigen::Index>(c);
      const double error = std::sqrt(squared * solved.covariance(i, i));
      if (mark(calibration, all_[moved_[c]].name, error, origin)) {
        kept.of.push_back(all_[moved_[c]].name);
        of.push_back(c);
      }
    }
    for (const std::size_t a : of) {
      for (const std::size_t b : of) {
        kept.relative.push_back(squared * solved.covariance(static_cast<Eigen::Index>(a),
                                                            static_cast<Eigen::Index>(b)));
      }
    }
    forget_covariances(calibration);
    if (kept.of.size() > 1) calibration.covariances.push_back(std::move(kept));
    return calibration;
  }

  // True where it is one of the scalars, whose errors have covariances.
  static bool mark(Calibration& calibration, const std::string& name, double error,
                   const std::string& origin) {
    for (const auto& [known, member] : kConstants) {
      if (known != name) continue;
      Constant& constant = calibration.*member;
      constant = {constant.value, error, true, origin};
      return true;
    }
    if (name == "prefill_ratio") calibration.prefill.origin = origin;
    if (name == "decode_ratio") calibration.decode.origin = origin;
    for (CollectiveConstants& curve : calibration.collectives) {
      if (name_of(curve) != name) continue;
      curve.error = error;
      curve.measured = true;
      curve.origin = origin;
    }
    return false;
  }

  // What an earlier fit said of constants together holds no longer where one of them moved.
  void forget_covariances(Calibration& calibration) const {
    std::erase_if(calibration.covariances, [&](const FitCovariance& fit) {
      return std::any_of(fit.of.begin(), fit.of.end(), [&](const std::string& name) {
        return std::any_of(moved_.begin(), moved_.end(), [&](std::size_t k) {
          return name == all_[k].name || name.starts_with(all_[k].name + ".");
        });
      });
    });
  }

  const Calibration& base_;
  const Predictor& predict_;
  const LearnOptions& options_;
  std::vector<Adjustable> all_;
  Indices moved_, free_;
  Eigen::VectorXd wanted_, weight_;  // ln y and 1 / deviation
  Eigen::VectorXd x_, last_;         // ln factors now and a round before
  Eigen::VectorXd residual_;         // at x_, over the deviations
  Eigen::MatrixXd slope_;            // of ln f at x_, over the deviations
  double before_ = 0;
};

}  // namespace

bool LearnedConstant::too_far() const {
  return fate == ConstantFate::moved && std::abs(std::log(after / before)) > 3 * prior;
}

bool LearnedConstant::above_peak() const {
  return fate == ConstantFate::moved && peak > 0 && after > peak;
}

LearnedConstants learn_constants(const Calibration& base,
                                 std::span<const MeasuredQuantity> measured,
                                 const Predictor& predict, const std::string& origin,
                                 const LearnOptions& options) {
  Learning learning(base, measured, predict, options);
  learning.learn();
  return learning.result(origin);
}

}  // namespace tessera
