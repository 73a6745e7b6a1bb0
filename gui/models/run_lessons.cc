// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_lessons.h"

#include <exception>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "gui/document/text.h"
#include "gui/translations/said.h"
#include "planner/advice/run_advice.h"
#include "planner/interop/repriced.h"
#include "planner/plan/plan_json.h"
#include "planner/request/plan_constants.h"
#include "simulator/learn/learned_report.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {
namespace {

MeasuredRun run_at(const std::filesystem::path& folder, const Plan& plan) {
  Problems problems;
  auto steps = read_metrics(folder / "metrics.jsonl", problems);
  if (!steps) throw Error(std::move(problems));
  auto run = measured_run(folder.string(), plan, *std::move(steps), std::nullopt, problems);
  if (!run) throw Error(std::move(problems));
  if (auto problem = unlearnable(*run)) throw Error(ExitCode::bad_input, {*std::move(problem)});
  return *std::move(run);
}

LearnedRuns learn(const MeasuredRun& run) {
  Problems problems;
  const auto base = constants_of(run.plan, problems);
  if (!base) throw Error(std::move(problems));
  LearnedRuns learned = learn_from_runs({run}, base->calibration);
  learned.learned.calibration.name = base->calibration.name + ", learned from 1 run";
  learned.learned.calibration.created = utc_now();
  return learned;
}

template <class Work>
Lesson told(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    return {.problem =
                error.problems().empty() ? QString(error.what()) : problemsText(error.problems())};
  } catch (const std::exception& error) {
    return {.problem = QString(error.what())};
  }
}

}  // namespace

Lesson learned_from(const std::filesystem::path& run, const Plan& plan) {
  return told([&]() -> Lesson {
    const LearnedRuns learned = learn(run_at(run, plan));
    return {saidLines(to_text(learned)), learned.learned.calibration, worth_of(learned), {}};
  });
}

Lesson advice_for(const std::filesystem::path& run, const Plan& plan,
                  const std::filesystem::path& folder) {
  return told([&]() -> Lesson {
    const MeasuredRun measured = run_at(run, plan);
    const LearnedRuns lesson = learn(measured);
    const Calibration& learned = lesson.learned.calibration;
    const auto calibration_file = folder / "calibration.json", plan_file = folder / "plan.json";
    write_calibration(learned, calibration_file);
    write_plan(repriced(measured.plan, learned).plan, plan_file);
    const RunAdvice advice = advise(measured.plan, Seconds{means_of(measured).step.mean}, learned);
    const std::string text = worth_text(lesson) + "\n\n" +
                             to_text(advice, plan_file.string(), calibration_file.string());
    return {saidLines(text), learned, worth_of(lesson), {}};
  });
}

}  // namespace tessera::gui
