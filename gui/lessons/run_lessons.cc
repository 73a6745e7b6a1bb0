// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/run_lessons.h"

#include <exception>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/documents/utc_now.h"
#include "gui/control/run_start.h"
#include "gui/document/text.h"
#include "gui/translations/said.h"
#include "planner/interop/repriced.h"
#include "planner/plan/plan_json.h"
#include "planner/request/plan_constants.h"
#include "simulator/learn/learned_report.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {
namespace {

// The run alone: of a long one a copy would be large.
std::vector<MeasuredRun> run_at(const std::filesystem::path& folder, const Plan& plan) {
  Problems problems;
  auto steps = read_metrics(metrics_file(folder), problems, is_compared);
  if (!steps) throw Error(std::move(problems));
  auto run = measured_run(folder.string(), plan, *std::move(steps), std::nullopt, problems);
  if (!run) throw Error(std::move(problems));
  if (auto problem = unlearnable(*run)) throw Error(ExitCode::bad_input, {*std::move(problem)});
  std::vector<MeasuredRun> runs;
  runs.push_back(*std::move(run));
  return runs;
}

LearnedRuns learn(const std::vector<MeasuredRun>& runs, const std::stop_token& stop) {
  end_if_stopped(stop);
  Problems problems;
  const auto base = constants_of(runs.front().plan, problems);
  if (!base) throw Error(std::move(problems));
  LearnedRuns learned = learn_from_runs(runs, base->calibration, {.stop = stop});
  learned.learned.calibration.name = base->calibration.name + ", learned from 1 run";
  learned.learned.calibration.created = utc_now();
  return learned;
}

Lesson lesson_of(const LearnedRuns& learned) {
  return {.worth_text = said(worth_text(learned)),
          .learned = learned.learned.calibration,
          .worth = worth_of(learned)};
}

template <class Work>
Lesson told(const Work& work) {
  try {
    return work();
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    return {.problem =
                error.problems().empty() ? QString(error.what()) : problemsText(error.problems())};
  } catch (const std::exception& error) {
    return {.problem = QString(error.what())};
  }
}

}  // namespace

Lesson learned_from(const std::filesystem::path& run, const Plan& plan,
                    const std::stop_token& stop) {
  return told([&]() -> Lesson {
    const LearnedRuns learned = learn(run_at(run, plan), stop);
    Lesson lesson = lesson_of(learned);
    lesson.text = saidLines(to_text(learned)).section('\n', 1);  // behind what it is worth
    return lesson;
  });
}

Lesson advice_for(const std::filesystem::path& run, const Plan& plan, const std::stop_token& stop) {
  return told([&]() -> Lesson {
    const std::vector<MeasuredRun> runs = run_at(run, plan);
    const MeasuredRun& measured = runs.front();
    Lesson lesson = lesson_of(learn(runs, stop));
    const Calibration& learned = *lesson.learned;
    Plan ran = repriced(measured.plan, learned).plan;
    state_constants(ran, learned);
    lesson.ran = std::make_shared<const Plan>(std::move(ran));
    lesson.advice =
        advise(measured.plan, Seconds{means_of(measured).step.mean}, learned, nullptr, stop);
    return lesson;
  });
}

AdviceFiles save_advice(const Lesson& lesson, const std::filesystem::path& folder) {
  const AdviceFiles names;
  std::error_code error;
  const bool taken = std::filesystem::exists(folder / names.calibration, error) ||
                     std::filesystem::exists(folder / names.plan, error);
  const std::filesystem::path into =
      taken ? newFolderIn(QString::fromStdString(folder.string()), "advice").toStdString()
            : folder.string();
  std::filesystem::create_directories(into, error);  // the writing says it
  const AdviceFiles files{into / names.calibration, into / names.plan};
  write_calibration(*lesson.learned, files.calibration);
  write_plan(*lesson.ran, files.plan);
  return files;
}

PlanQuery question_of(const Lesson& lesson, const AdvisedChange& change) {
  PlanQuery question = query_of(lesson.ran);
  question.fixed = change.settings;
  return question;
}

}  // namespace tessera::gui
