// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/metrics/phase_seconds.h"
#include "gui/models/colours.h"
#include "gui/report/figure.h"
#include "gui/report/sections.h"

namespace tessera::gui {
namespace {

constexpr QRgb kOwn = 0xff0072b2, kPredicted = 0xff8a8f98, kLimit = 0xff777777,
               kViolated = 0xffc0392b;
constexpr std::array<QRgb, 4> kKinds{0xff0072b2, 0xffd55e00, 0xff009e73, 0xffe69f00};
constexpr std::array<QRgb, 4> kOthers{0xff8a8f98, 0xffcc79a7, 0xff56b4e9, 0xffb9770e};
constexpr std::size_t kMostMetrics = 400;

FigureUnit unit_of(RunModel::Figure::Kind kind) {
  switch (kind) {
    case RunModel::Figure::Kind::seconds:
      return second_number;
    case RunModel::Figure::Kind::bytes:
      return byte_number;
    case RunModel::Figure::Kind::number:
      break;
  }
  return plain_number;
}

const char* class_of(RunState state) {
  switch (state) {
    case RunState::lost:
    case RunState::failed:
      return "failure";
    case RunState::stalled:
    case RunState::stopped:
    case RunState::unseen:
    case RunState::unreached:
      return "warning";
    case RunState::none:
    case RunState::loading:
    case RunState::running:
    case RunState::paused:
    case RunState::finished:
      break;
  }
  return "headline";
}

/// A metric of this run, of those beside it, and the limits that rules have for it.
std::vector<FigureLine> lines_of(RunFollower& run, const std::string& metric, QRgb colour) {
  std::vector<FigureLine> lines{
      {QString::fromStdString(metric), QColor(colour), run.steps()->series(metric)}};
  for (std::size_t i = 0; i < run.others().size(); ++i) {
    const RunFollower::Other& other = run.others()[i];
    if (!other.steps->has(metric)) continue;
    lines.push_back({other.name, QColor(kOthers[i % kOthers.size()]), other.steps->series(metric)});
  }
  const std::vector<QPointF> own = lines.front().points;
  if (own.empty()) return lines;
  for (const RuleModel::Line& rule : run.rules()->linesOf(metric)) {
    lines.push_back({Words::tr("rule: %1").arg(rule.name),
                     QColor(rule.violated ? kViolated : kLimit),
                     {{own.front().x(), rule.limit}, {own.back().x(), rule.limit}},
                     true});
  }
  return lines;
}

// Of many steps a column is the mean of some that follow one another.
void add_phases_by_step(Markup& to, const RunModel& model) {
  constexpr int kMostColumns = 100;
  const int rows = model.rowCount();
  const int in_one = std::max(1, (rows + kMostColumns - 1) / kMostColumns);
  std::vector<FigureSeries> series;
  for (const Phase phase : model.phases()) {
    FigureSeries each{toText(name_of(phase)), colourOf(phase), {}};
    const std::vector<double> taken = phase_seconds(model.columns(), phase);
    for (int row = 0; row < rows; row += in_one) {
      const int end = std::min(rows, row + in_one);
      double sum = 0;
      for (int at = row; at < end; ++at) {
        const double seconds = taken[static_cast<std::size_t>(at)];
        sum += std::isfinite(seconds) ? seconds / (end - row) : 0;
      }
      each.values.push_back(std::isfinite(sum) ? sum : 0);
    }
    series.push_back(std::move(each));
  }
  if (rows == 0) return;
  const double first = static_cast<double>(model.steps().front());
  const double last = static_cast<double>(model.steps().back());
  draw_columns(to, Words::tr("Time by phase"), second_number, first - 0.5, last + 0.5, series);
}

/// The figures that a run is judged by; returns the metrics that they have.
std::set<std::string> add_main_figures(Markup& to, RunFollower& run) {
  std::set<std::string> shown;
  to.open("div", {{"class", "pictures"}});
  add_phases_by_step(to, *run.steps());
  for (const RunModel::Figure& figure : RunModel::figures()) {
    std::vector<FigureLine> lines;
    for (std::size_t i = 0; i < figure.names.size(); ++i) {
      const std::string& name = figure.names[i];
      if (!run.steps()->has(name)) continue;
      shown.insert(name);
      for (FigureLine& line : lines_of(run, name, kKinds[i % kKinds.size()])) {
        lines.push_back(std::move(line));
      }
    }
    draw_lines(to, figure.title(), unit_of(figure.kind), lines);
  }
  to.close();
  return shown;
}

void add_metrics(Markup& to, RunFollower& run) {
  to.element("h2", Words::tr("Metrics"));
  const RunModel& model = *run.steps();
  if (model.steps().empty()) {
    to.element("p", Words::tr("No step has ended so far."));
    return;
  }
  const std::set<std::string> shown = add_main_figures(to, run);
  std::vector<std::string> others;
  for (const std::string& name : model.names()) {
    if (!shown.contains(name) && model.has(name)) others.push_back(name);
  }
  if (others.empty()) return;
  to.open("details");
  to.element("summary", Words::tr("All other metrics (%1)").arg(others.size()));
  to.open("div", {{"class", "pictures"}});
  for (std::size_t i = 0; i < std::min(others.size(), kMostMetrics); ++i) {
    const std::string& name = others[i];
    const FigureUnit unit = name.starts_with("timing_s/") ? second_number
                            : name.ends_with("_bytes")    ? byte_number
                                                          : plain_number;
    draw_lines(to, QString::fromStdString(name), unit, lines_of(run, name, kOwn));
  }
  to.close();
  if (others.size() > kMostMetrics) {
    to.element("p", Words::tr("and %1 metrics more").arg(others.size() - kMostMetrics));
  }
  to.close();
}

void add_comparison(Markup& to, const ComparisonModel& model) {
  if (model.rowCount() == 0) return;
  to.element("h2", Words::tr("Predicted beside measured"));
  for (const QString& gap : model.gaps()) to.element("p", gap);
  QStringList names;
  FigureSeries predicted{Words::tr("predicted"), QColor(kPredicted), {}, {}};
  FigureSeries measured{Words::tr("measured"), QColor(kOwn), {}, {}};
  for (const PhaseComparison& row : model.comparison().phases) {
    if (row.phase == "step" || (row.predicted_s <= 0 && row.measured_s <= 0)) continue;
    names << QString::fromStdString(row.phase);
    predicted.values.push_back(row.predicted_s);
    predicted.errors.push_back(row.predicted_deviation_s);
    measured.values.push_back(row.measured_s);
    measured.errors.push_back(row.measured_deviation_s);
  }
  if (!names.isEmpty()) {
    draw_beside(
        to,
        Words::tr("By phase, with one standard deviation of the prediction, and of the mean "
                  "over the measured steps"),
        second_number, names, {predicted, measured});
  }
  add_table(to, model, ComparisonModel::BadRole);
}

}  // namespace

void add_run(Markup& to, Session& session) {
  RunFollower& run = *session.run();
  const auto& steps = run.steps()->steps();
  to.element("h2", Words::tr("The run %1").arg(run.name()));
  const RunSummary& summary = run.summary();
  to.element("p", run.isLoading() ? Words::tr("The folder is being read.") : summary.text,
             {{"class", class_of(summary.state)}});
  if (!steps.empty()) {
    to.element("p", Words::tr("Steps %1 to %2.").arg(steps.front()).arg(steps.back()));
  }
  const RuleModel& rules = *run.rules();
  if (!rules.banner().isEmpty()) to.element("p", rules.banner(), {{"class", "warning"}});
  if (const QString whose = run.whoseTimes(); !whose.isEmpty()) {
    to.element("p", Words::tr("What was measured: %1.").arg(whose));
  }
  add_comparison(to, *run.comparison());
  add_metrics(to, run);
  if (!steps.empty()) {
    to.element("h2", Words::tr("Rules"));
    add_table(to, rules, RuleModel::BadRole);
  }
  if (run.ranks()->rowCount() > 0) {
    to.element("h2", Words::tr("Ranks"));
    add_table(to, *run.ranks(), RankStateModel::BadRole);
  }
}

}  // namespace tessera::gui
