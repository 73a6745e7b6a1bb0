// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/run_charts.h"

#include <algorithm>
#include <cmath>

#include "gui/models/colours.h"
#include "gui/views/view.h"

namespace tessera::gui {

Chart* chartOfSteps(Session& session, const QString& title,
                    void (*draw)(Chart& chart, RunFollower& run)) {
  auto* chart = new Chart(title);
  RunFollower* run = session.run();
  QObject::connect(run->steps(), &RunModel::stepsChanged, chart, [=] { draw(*chart, *run); });
  return chart;
}

namespace {

constexpr QRgb kReward = 0xff0072b2, kKlLoss = 0xffd55e00, kPpoKl = 0xff009e73,
               kThroughput = 0xff009e73, kReshard = 0xffe69f00, kBound = 0xff555555;

QString shortName(const std::string& name) {
  return QString::fromStdString(name).section('/', -1).replace('_', ' ');
}

void drawReward(Chart& chart, RunFollower& run) {
  chart.showLines("score", {{"score", QColor(kReward), run.steps()->series("critic/score/mean")}});
}

void drawKl(Chart& chart, RunFollower& run) {
  std::vector<ChartLine> lines;
  const std::pair<const char*, QRgb> kinds[] = {
      {"actor/kl_loss", kKlLoss}, {"actor/reward_kl_penalty", kKlLoss}, {"actor/ppo_kl", kPpoKl}};
  for (const auto& [name, colour] : kinds) {
    if (!run.steps()->has(name)) continue;
    lines.push_back({shortName(name), QColor(colour), run.steps()->series(name)});
  }
  chart.showLines(lines.size() == 1 ? lines[0].name + ", nats" : QString("nats"), lines);
}

void drawThroughput(Chart& chart, RunFollower& run) {
  chart.showLines("tokens/s/GPU",
                  {{"throughput", QColor(kThroughput), run.steps()->series("perf/throughput")}},
                  true);
}

void drawPhases(Chart& chart, RunFollower& run) {
  const RunModel& model = *run.steps();
  std::vector<double> positions;
  for (const StepNumbers& step : model.steps()) positions.push_back(static_cast<double>(step.step));
  std::vector<ChartStack> stacks;
  for (const Phase phase : model.phases()) {
    const std::string name(name_of(phase));
    ChartStack stack{QString::fromStdString(name), colourOf(phase), {}};
    for (const StepNumbers& step : model.steps()) {
      const auto found = step.data.find("timing_s/" + name);
      stack.values.push_back(found == step.data.end() ? 0 : found->second);
    }
    stacks.push_back(std::move(stack));
  }
  chart.showColumns("seconds", positions, stacks);
}

void drawReshardRate(Chart& chart, RunFollower& run) {
  chart.showLines("GB/s", {{"rate", QColor(kReshard), run.steps()->series("reshard/gbps")}}, true);
}

void drawReshardBytes(Chart& chart, RunFollower& run) {
  ChartLine received{"received", QColor(kReshard), run.steps()->series("reshard/bytes")};
  double most = 0;
  for (const QPointF& point : received.points) most = std::max(most, point.y());
  const int power = most >= 1 << 30 ? 3 : most >= 1 << 20 ? 2 : 1;
  const double unit = std::pow(1024.0, power);
  for (QPointF& point : received.points) point.ry() /= unit;
  std::vector<ChartLine> bytes{received};
  if (run.plan() && !received.points.empty()) {
    for (const PlannedReshard& pair : run.plan()->reshard) {
      const double bound = static_cast<double>(pair.lower_bound_bytes.value) / unit;
      const double first = received.points.front().x(), last = received.points.back().x();
      bytes.push_back({"lower bound", QColor(kBound), {{first, bound}, {last, bound}}, true});
    }
  }
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  chart.showLines(kUnits[power], bytes, true);
}

QWidget* reshardBytes(Session& session) {
  Chart* chart =
      chartOfSteps(session, "Reshard, bytes received by the busiest rank", drawReshardBytes);
  RunFollower* run = session.run();
  QObject::connect(run->comparison(), &QAbstractItemModel::modelReset, chart,
                   [=] { drawReshardBytes(*chart, *run); });
  return chart;
}

using Made = QWidget*;
const RegisteredView kRewardView({"reward", Place::charts, 0, 1, "", [](Session& session) -> Made {
                                    return chartOfSteps(session, "Reward (mean score)", drawReward);
                                  }});
const RegisteredView kKlView({"kl", Place::charts, 1, 1, "", [](Session& session) -> Made {
                                return chartOfSteps(session, "KL divergence", drawKl);
                              }});
const RegisteredView kThroughputView({"throughput", Place::charts, 2, 1, "",
                                      [](Session& session) -> Made {
                                        return chartOfSteps(session, "Throughput", drawThroughput);
                                      }});
const RegisteredView kPhasesView({"step_phases", Place::charts, 3, 1, "",
                                  [](Session& session) -> Made {
                                    return chartOfSteps(session, "Time by phase", drawPhases);
                                  }});
const RegisteredView kRateView({"reshard_rate", Place::charts, 4, 1, "",
                                [](Session& session) -> Made {
                                  return chartOfSteps(session, "Reshard rate", drawReshardRate);
                                }});
const RegisteredView kBytesView({"reshard_bytes", Place::charts, 5, 1, "", reshardBytes});

}  // namespace
}  // namespace tessera::gui
