// SPDX-License-Identifier: GPL-3.0-or-later
// A rank's memory over the step: that it is the simulator's own, and that no zoom hides its peak.
#include "gui/step/memory_steps.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QImage>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/models/colours.h"
#include "gui/models/memory_model.h"
#include "gui/step/memory_moment_model.h"
#include "gui/step/memory_text.h"
#include "gui/step_views/memory_painter.h"
#include "planner/explain/memory_account.h"
#include "simulator/engine/report.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

constexpr auto kFatalHere = QAbstractItemModelTester::FailureReportingMode::Fatal;

Calibration constants_of(const Plan& plan) {
  Problems problems;
  return *calibration_named(plan.provenance.calibration, plan.cluster, problems);
}

/// A plan with what the simulator prints of it and traces.
struct Simulated {
  const Plan& plan;
  Calibration constants = constants_of(plan);
  TimelineIndex index = simulated(plan, constants);
  Node report, trace;

  explicit Simulated(const Plan& of) : plan(of) {
    Problems problems;
    const Simulation simulation = simulate(plan, constants);
    report = parse_json(to_json(simulation, plan, constants), "report", problems)->root;
    trace = parse_json(to_chrome_trace({&simulation.timeline}), "trace", problems)->root;
  }
  /// The counters of a rank in the trace.
  std::vector<const Node*> counters(int rank) const {
    std::vector<const Node*> found;
    for (const Node& event : trace.find("traceEvents")->items) {
      if (event.find("ph")->text == "C" && event.find("pid")->integer == rank) {
        found.push_back(&event);
      }
    }
    return found;
  }
};

const Simulated& digits() {
  static const Simulated all(digits_plan());
  return all;
}
const Simulated& split() {
  static const Simulated all(split_plan());
  return all;
}

TEST(MemorySteps, AreTheCountersThatTheSimulatorTraces) {
  for (const Simulated* one : {&digits(), &split()}) {
    std::size_t compared = 0;
    for (int rank = 0; rank < one->plan.world_size(); ++rank) {
      Problems problems;
      const MemorySteps steps = memory_steps_of(one->index, rank);
      const auto counters = one->counters(rank);
      const auto table = parse_csv(csv_of(steps), "memory", problems);
      ASSERT_TRUE(table);
      ASSERT_EQ(table->rows.size(), counters.size());
      for (std::size_t i = 0; i < counters.size(); ++i) {
        const auto cell = [&](std::string_view name) {
          return std::stoll(table->rows[i].cells[*table->column(name)]);
        };
        EXPECT_EQ(cell("time_ns"), std::llround(counters[i]->find("ts")->number * 1e3));
        const Node& classes = *counters[i]->find("args");
        ASSERT_EQ(classes.keys.size(), static_cast<std::size_t>(kMemoryClasses));
        std::int64_t total = 0;
        for (std::size_t k = 0; k < classes.keys.size(); ++k) {
          EXPECT_EQ(cell(classes.keys[k]), classes.items[k].integer) << classes.keys[k];
          total += classes.items[k].integer;
          ++compared;
        }
        EXPECT_EQ(cell("total"), total);
      }
    }
    EXPECT_GT(compared, 500u);
  }
}

TEST(MemorySteps, PeakPhaseAndLimitAreThoseOfTheSimulatorsReport) {
  for (const Simulated* one : {&digits(), &split()}) {
    MemoryModel account;
    account.setPlan(shared(one->plan), one->constants);
    std::int64_t most = 0;
    for (const Node& rank : one->report.find("ranks")->items) {
      const int number = static_cast<int>(rank.find("rank")->integer);
      const MemorySteps steps = memory_steps_of(one->index, number);
      account.setRank(number);
      Problems problems;
      const auto json =
          parse_json(json_of(steps, {account.limit(), account.device()}), "memory", problems);
      ASSERT_TRUE(json);
      for (const char* key : {"peak_bytes", "limit_bytes"}) {
        EXPECT_EQ(json->root.find(key)->integer, rank.find(key)->integer) << key;
      }
      EXPECT_EQ(json->root.find("peak_phase")->text, rank.find("peak_phase")->text);
      most = std::max(most, json->root.find("peak_bytes")->integer);
    }
    EXPECT_EQ(most, one->plan.prediction.peak_bytes.value);  // as the plan states it
  }
}

// The planner counts the most that a phase may need; the simulator what its micro-batches do.
TEST(MemorySteps, NoPhaseHoldsMoreThanThePlannersAccountOfIt) {
  for (const Simulated* one : {&digits(), &split()}) {
    int equal = 0;
    for (int rank = 0; rank < one->plan.world_size(); ++rank) {
      Problems problems;
      const auto account = memory_account(one->plan, one->constants, {.rank = rank}, problems);
      ASSERT_TRUE(account);
      const MemorySteps steps = memory_steps_of(one->index, rank);
      for (const PhaseAccount& phase : account->phases) {
        const auto fullest = fullest_in(steps, phase.phase);
        if (!fullest) continue;
        EXPECT_LE(steps.total(*fullest), phase.sum.value) << rank << name_of(phase.phase);
        equal += steps.total(*fullest) == phase.sum.value ? 1 : 0;
      }
    }
    EXPECT_GT(equal, one->plan.world_size());
  }
}

/// Samples and phases of one rank at random times.
TimelineIndex random_memory(unsigned seed, int samples) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
  Simulation simulation;
  std::int64_t now = 0;
  for (int i = 0; i < samples; ++i) {
    MemoryUse use{.weights = Bytes{1 + below(3)}};
    use.activations = Bytes{below(1000)};
    simulation.timeline.memory.push_back({now, 0, use});
    now += 1 + below(below(6) == 0 ? 900 : 12);
  }
  const std::array phases{Phase::gen, Phase::ref, Phase::gen, Phase::update_actor};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const auto part = [&](std::size_t at) { return now * static_cast<std::int64_t>(at) / 4; };
    simulation.timeline.spans.push_back({part(i) + (i == 2 ? 5 : 0), part(i + 1), 0, Stream::phases,
                                         phases[i], 0, -1, std::string(name_of(phases[i])), 0, 0});
  }
  simulation.ranks.resize(1);
  return index_of(std::move(simulation));
}

TEST(MemorySteps, EveryPixelShowsTheMostAndTheLeastOfWhatIsInIt) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    const TimelineIndex index = random_memory(seed, 700);
    const MemorySteps steps = memory_steps_of(index, 0);
    const auto end = static_cast<double>(index.end_ns);
    for (const double part : {1.0, 0.3, 0.02, 0.001}) {
      constexpr int kWidth = 160;
      const TimeAxis axis = fitted(0.4 * end * (1 - part), (0.4 + 0.6 * part) * end, kWidth);
      std::vector<std::int64_t> drawn, least;
      for (const MemoryColumn& column : columns_of(steps, axis, kWidth)) {
        EXPECT_EQ(column.from, static_cast<int>(drawn.size()));
        drawn.resize(static_cast<std::size_t>(column.to), steps.total(column.sample));
        least.resize(static_cast<std::size_t>(column.to), steps.total(column.least));
      }
      ASSERT_EQ(drawn.size(), static_cast<std::size_t>(kWidth));
      for (int x = 0; x < kWidth; ++x) {
        std::int64_t fullest = 0, emptiest = std::numeric_limits<std::int64_t>::max();
        for (std::size_t i = 0; i < steps.samples.size(); ++i) {
          const bool inside = static_cast<double>(steps.samples[i].time_ns) < axis.time_at(x + 1) &&
                              static_cast<double>(steps.end_of(i)) > axis.time_at(x);
          if (!inside) continue;
          fullest = std::max(fullest, steps.total(i));
          emptiest = std::min(emptiest, steps.total(i));
        }
        EXPECT_EQ(drawn[static_cast<std::size_t>(x)], fullest) << part << " " << x;
        EXPECT_EQ(least[static_cast<std::size_t>(x)], emptiest) << part << " " << x;
      }
    }
  }
}

// Three of a thousandth of the step, twenty of a millionth.
TEST(MemoryPicture, DipsAreSeenAtEveryWidth) {
  Simulation simulation;
  constexpr std::int64_t kEnd = 10'000'000;
  MemoryUse full, low;
  full.activations = Bytes(60);
  low.activations = Bytes(20);
  simulation.timeline.memory.push_back({0, 0, full});
  std::vector<std::int64_t> dips;
  for (std::int64_t i = 1; i <= 23; ++i) {
    const std::int64_t at = kEnd * i / 24 + 7919 * i, length = i % 8 == 0 ? kEnd / 1000 : 10;
    simulation.timeline.memory.push_back({at, 0, low});
    simulation.timeline.memory.push_back({at + length, 0, full});
    dips.push_back(at);
  }
  simulation.timeline.spans.push_back(
      {0, kEnd, 0, Stream::phases, Phase::update_actor, 0, -1, "update_actor", 0, 0});
  simulation.ranks.resize(1);
  const TimelineIndex index = index_of(std::move(simulation));
  MemoryPicture picture;
  picture.steps = memory_steps_of(index, 0);
  picture.palette = paletteOf(Theme::light);
  const QRgb plain = classColour(picture.steps.classes.front()).rgb();
  for (int width = 780; width < 1100; width += 17) {
    picture.width = width;
    picture.size = {MemoryPicture::kScale + width, 400};
    picture.axis = fitted(0, static_cast<double>(kEnd), width);
    QImage image(picture.size, QImage::Format_RGB32);
    QPainter painter(&image);
    paint(painter, picture);
    painter.end();
    const int below_name = static_cast<int>(picture.yOf(23));
    int seen = 0;
    bool before = false;
    for (int x = 1; x + 1 < width; ++x) {
      const bool dark = image.pixel(MemoryPicture::kScale + x, below_name) != plain;
      if (dark && !before) ++seen;
      before = dark;
    }
    EXPECT_EQ(seen, static_cast<int>(dips.size())) << width;
  }
}

TEST(MemorySteps, AMomentIsFoundAndAPhaseHasItsFullest) {
  const TimelineIndex index = random_memory(5, 300);
  const MemorySteps steps = memory_steps_of(index, 0);
  std::map<Phase, std::int64_t> most;
  for (std::int64_t ns = 0; ns < index.end_ns; ++ns) {
    std::size_t last = 0;
    while (last + 1 < steps.samples.size() && steps.samples[last + 1].time_ns <= ns) ++last;
    ASSERT_EQ(sample_at(steps, static_cast<double>(ns)), last);
    std::optional<Phase> phase;
    for (const Span& span : index.simulation.timeline.spans) {
      if (span.start_ns <= ns && ns < span.end_ns) phase = span.phase;
    }
    ASSERT_EQ(phase_at(steps, static_cast<double>(ns)), phase);
    if (phase) most[*phase] = std::max(most[*phase], steps.total(last));
  }
  for (const auto& [phase, bytes] : most) {
    const auto fullest = fullest_in(steps, phase);
    ASSERT_TRUE(fullest);
    EXPECT_EQ(steps.total(*fullest), bytes);
  }
  EXPECT_FALSE(fullest_in(steps, Phase::values));
  EXPECT_TRUE(memory_steps_of(index, 7).empty());
}

/// Two GiB of weights throughout; later gradients of 3 beside activations of 5.
TimelineIndex meeting() {
  constexpr std::int64_t kGib = 1LL << 30;
  const auto at = [&](std::int64_t ns, std::int64_t gradients, std::int64_t activations) {
    MemoryUse use{.weights = Bytes{2 * kGib}, .gradients = Bytes{gradients * kGib}};
    use.activations = Bytes{activations * kGib};
    return MemorySample{ns, 0, use};
  };
  Simulation simulation;
  simulation.timeline.memory = {at(0, 0, 0), at(1'000'000'000, 0, 6), at(2'000'000'000, 3, 5),
                                at(2'500'000'000, 3, 0)};
  simulation.timeline.spans = {
      {1'000'000'000, 3'000'000'000, 0, Stream::phases, Phase::update_actor, 0, -1, "u", 0, 0}};
  simulation.ranks = {{.peak_bytes = 10 * kGib, .peak_phase = Phase::update_actor}};
  return index_of(std::move(simulation));
}

TEST(MemoryText, SaysWhatMeetsAtThePeakAndHowMuchTooMuchItIs) {
  constexpr std::int64_t kGib = 1LL << 30;
  const TimelineIndex index = meeting();
  const MemorySteps steps = memory_steps_of(index, 0);
  EXPECT_EQ(steps.peak, 2u);
  const QString fits = peakText(steps, {16 * kGib, 20 * kGib});
  EXPECT_TRUE(fits.startsWith("<b>10.0 of the 16.0 GiB that plans may use in update_actor</b>"))
      << fits.toStdString();
  EXPECT_TRUE(fits.contains("activations (5.00 GiB) and gradients (3.00 GiB) meet"))
      << fits.toStdString();
  EXPECT_TRUE(fits.contains("2.00 GiB that it always holds")) << fits.toStdString();
  EXPECT_FALSE(fits.contains("too much"));
  EXPECT_TRUE(peakText(steps, {8 * kGib, 20 * kGib}).contains("2.00 GiB too much"));
  EXPECT_EQ(describe(steps, 1.2e9),
            "rank 0 at 1.20 s, in update_actor: 8.00 GiB\n6.00 GiB activations\n2.00 GiB weights");
}

TEST(MemoryMomentModel, KeepsTheContractAndAddsUp) {
  MemoryMomentModel model;
  QAbstractItemModelTester tester(&model, kFatalHere);
  const MemorySteps steps = memory_steps_of(split().index, 0);
  const MemoryLimits limits{steps.total(steps.peak) - 1, 2 * steps.total(steps.peak)};
  for (std::size_t sample = 0; sample < steps.samples.size(); ++sample) {
    model.setMoment(steps, limits, sample);
    const int all = model.rowCount() - 2;
    ASSERT_EQ(all, static_cast<int>(steps.classes.size()));
    for (const int column : {MemoryMomentModel::Now, MemoryMomentModel::AtPeak}) {
      const auto bytes = [&](int row) {
        return model.index(row, column).data(MemoryMomentModel::BytesRole).toLongLong();
      };
      std::int64_t sum = 0;
      for (int row = 0; row < all; ++row) sum += bytes(row);
      EXPECT_EQ(sum, bytes(all));
      EXPECT_EQ(bytes(all + 1), limits.usable - sum);
    }
  }
  const int left = model.rowCount() - 1;
  EXPECT_TRUE(
      model.index(left, MemoryMomentModel::AtPeak).data(MemoryMomentModel::BadRole).toBool());
  EXPECT_EQ(model.index(left, MemoryMomentModel::AtPeak).data().toString(), "-1 B");
  model.clear();
  EXPECT_EQ(model.rowCount(), 0);
}

}  // namespace
}  // namespace tessera::gui
