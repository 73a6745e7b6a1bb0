// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/run_charts.h"

#include <QEvent>
#include <QTimer>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/metrics/phase_seconds.h"
#include "gui/models/colours.h"
#include "gui/views/view.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

ChartTurn::ChartTurn(Chart* chart, const RunModel* steps, std::function<void()> draw)
    : QObject(chart), chart_(chart), steps_(steps), draw_(std::move(draw)) {
  chart->installEventFilter(this);
}

void ChartTurn::ask() {
  constexpr int kLong = 1000;  // steps
  const bool waiting = std::exchange(asked_, true);
  if (steps_->rowCount() < kLong) return take();
  if (!waiting) {
    QTimer::singleShot(0, this, [this] {
      if (chart_->isVisible()) take();
    });
  }
}

void ChartTurn::take() {
  if (std::exchange(asked_, false)) draw_();
}

bool ChartTurn::eventFilter(QObject* watched, QEvent* event) {
  if (watched == chart_ && event->type() == QEvent::Paint) take();
  return QObject::eventFilter(watched, event);
}

StepChart* chartOfSteps(Session& session, const QString& title,
                        void (*draw)(StepChart& chart, RunFollower& run)) {
  auto* chart = new StepChart(title);
  RunFollower* run = session.run();
  auto* turn = new ChartTurn(chart, run->steps(), [=] { draw(*chart, *run); });
  QObject::connect(run->steps(), &RunModel::stepsChanged, turn, &ChartTurn::ask);
  QObject::connect(run->rules(), &QAbstractItemModel::modelReset, turn, &ChartTurn::ask);
  QObject::connect(run->comparison(), &QAbstractItemModel::modelReset, turn, &ChartTurn::ask);
  QObject::connect(run, &RunFollower::othersChanged, turn, &ChartTurn::ask);
  QObject::connect(run, &RunFollower::folderChanged, chart, &Chart::fit);
  return chart;
}

namespace {

constexpr QRgb kReward = 0xff0072b2, kKlLoss = 0xffd55e00, kPpoKl = 0xff009e73,
               kThroughput = 0xff009e73, kReshard = 0xffe69f00, kBound = 0xff777777,
               kViolated = 0xffc0392b;

QString shortName(const std::string& name) { return QString::fromStdString(name).section('/', -1); }

// What the run's own line is called: beside others by the run, as they are.
QString ownName(const RunFollower& run, const QString& name) {
  return run.others().empty() ? name : run.name();
}

// The same metric of the other runs, and what the rules say of it. `of`: what it is called where
// the chart has several metrics.
void addBeside(std::vector<ChartLine>& lines, RunFollower& run, const std::string& metric,
               double unit = 1, const QString& of = {}) {
  static constexpr std::array<QRgb, 4> kOthers{0xff8a8f98, 0xffcc79a7, 0xff56b4e9, 0xffb9770e};
  for (std::size_t i = 0; i < run.others().size(); ++i) {
    const RunFollower::Other& other = run.others()[i];
    if (!other.steps->has(metric)) continue;
    ChartLine line{other.name + of, QColor(kOthers[i % kOthers.size()]),
                   other.steps->series(metric)};
    for (QPointF& point : line.points) point.ry() /= unit;
    lines.push_back(std::move(line));
  }
  const std::vector<QPointF> own = run.steps()->series(metric);
  if (own.empty()) return;
  for (const RuleModel::Line& rule : run.rules()->linesOf(metric)) {
    const double limit = rule.limit / unit;
    lines.push_back({Words::tr("rule: %1").arg(rule.name),
                     QColor(rule.violated ? kViolated : kBound),
                     {{own.front().x(), limit}, {own.back().x(), limit}},
                     true});
  }
}

void drawMetric(StepChart& chart, RunFollower& run, const std::string& metric, const QString& name,
                QRgb colour, const QString& unit, bool from_zero) {
  chart.showSteps(unit, linesOf(run, metric, name, QColor(colour)), from_zero);
}

void drawReward(StepChart& chart, RunFollower& run) {
  drawMetric(chart, run, "critic/score/mean", Words::tr("score"), kReward, Words::tr("score"),
             false);
}

void drawKl(StepChart& chart, RunFollower& run) {
  std::vector<ChartLine> lines;
  QString last;
  const std::pair<const char*, QRgb> kinds[] = {
      {"actor/kl_loss", kKlLoss}, {"actor/reward_kl_penalty", kKlLoss}, {"actor/ppo_kl", kPpoKl}};
  for (const auto& [name, colour] : kinds) {
    if (!run.steps()->has(name)) continue;
    const QString own = shortName(name), of = ": " + own;
    lines.push_back(
        {run.others().empty() ? own : run.name() + of, QColor(colour), run.steps()->series(name)});
    addBeside(lines, run, name, 1, of);
    last = own;
  }
  chart.showSteps(lines.size() == 1 ? Words::tr("%1, nats").arg(last) : Words::tr("nats"), lines);
}

void drawThroughput(StepChart& chart, RunFollower& run) {
  drawMetric(chart, run, "perf/throughput", Words::tr("throughput"), kThroughput, "tokens/s/GPU",
             true);
}

// Of many steps a column is the mean of some that follow one another.
void drawPhases(StepChart& chart, RunFollower& run) {
  constexpr int kMostColumns = 400;
  const RunModel& model = *run.steps();
  const int rows = model.rowCount();
  const int in_one = std::max(1, (rows + kMostColumns - 1) / kMostColumns);
  std::vector<double> positions;
  for (int row = 0; row < rows; row += in_one) {
    positions.push_back(static_cast<double>(model.steps()[static_cast<std::size_t>(row)]));
  }
  std::vector<ChartStack> stacks;
  for (const Phase phase : model.phases()) {
    const std::vector<double> taken = phase_seconds(model.columns(), phase);
    ChartStack stack{toText(name_of(phase)), colourOf(phase), {}};
    for (int row = 0; row < rows; row += in_one) {
      const int end = std::min(rows, row + in_one);
      double sum = 0;
      for (int each = row; each < end; ++each) {
        const double seconds = taken[static_cast<std::size_t>(each)];
        sum += std::isnan(seconds) ? 0 : seconds;
      }
      stack.values.push_back(sum / (end - row));
    }
    stacks.push_back(std::move(stack));
  }
  chart.showStepColumns(Words::tr("seconds"), positions, stacks);
}

void drawReshardRate(StepChart& chart, RunFollower& run) {
  drawMetric(chart, run, "reshard/gbps", Words::tr("rate"), kReshard, "GB/s", true);
}

void drawReshardBytes(StepChart& chart, RunFollower& run) {
  ChartLine received{ownName(run, Words::tr("received")), QColor(kReshard),
                     run.steps()->series("reshard/bytes")};
  std::vector<double> bounds;
  if (run.plan() && !received.points.empty()) {
    for (const PlannedReshard& pair : run.plan()->reshard) {
      bounds.push_back(static_cast<double>(pair.lower_bound_bytes.value));
    }
  }
  double most = bounds.empty() ? 0 : *std::max_element(bounds.begin(), bounds.end());
  for (const QPointF& point : received.points) most = std::max(most, point.y());
  const int power = most >= 1 << 30 ? 3 : most >= 1 << 20 ? 2 : 1;
  const double unit = std::pow(1024.0, power);
  for (QPointF& point : received.points) point.ry() /= unit;
  std::vector<ChartLine> bytes{received};
  for (const double bound : bounds) {
    const double first = received.points.front().x(), last = received.points.back().x();
    bytes.push_back({Words::tr("lower bound"),
                     QColor(kBound),
                     {{first, bound / unit}, {last, bound / unit}},
                     true});
  }
  addBeside(bytes, run, "reshard/bytes", unit);
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  chart.showSteps(kUnits[power], bytes, true);
}

// Those that have a legend share the last row, which is the highest.
constexpr int kRow = 2, kRowOfLegends = 3;

using Made = QWidget*;
const RegisteredView kRewardView({"reward", Place::charts, 0, kRow, "",
                                  [](Session& session) -> Made {
                                    return chartOfSteps(session, Words::tr("Reward (mean score)"),
                                                        drawReward);
                                  }});
const RegisteredView kKlView({"kl", Place::charts, 1, kRow, "", [](Session& session) -> Made {
                                return chartOfSteps(session, Words::tr("KL divergence"), drawKl);
                              }});
const RegisteredView kThroughputView({"throughput", Place::charts, 2, kRow, "",
                                      [](Session& session) -> Made {
                                        return chartOfSteps(session, Words::tr("Throughput"),
                                                            drawThroughput);
                                      }});
const RegisteredView kRateView({"reshard_rate", Place::charts, 3, kRow, "",
                                [](Session& session) -> Made {
                                  return chartOfSteps(session, Words::tr("Reshard rate"),
                                                      drawReshardRate);
                                }});
const RegisteredView kPhasesView({"step_phases", Place::charts, 4, kRowOfLegends, "",
                                  [](Session& session) -> Made {
                                    return chartOfSteps(session, Words::tr("Time by phase"),
                                                        drawPhases);
                                  }});
const RegisteredView kBytesView(
    {"reshard_bytes", Place::charts, 5, kRowOfLegends, "", [](Session& session) -> Made {
       return chartOfSteps(session, Words::tr("Reshard bytes, busiest rank"), drawReshardBytes);
     }});

}  // namespace

std::vector<ChartLine> linesOf(RunFollower& run, const std::string& metric, const QString& name,
                               const QColor& colour) {
  std::vector<ChartLine> lines{{ownName(run, name), colour, run.steps()->series(metric)}};
  addBeside(lines, run, metric);
  return lines;
}

}  // namespace tessera::gui
