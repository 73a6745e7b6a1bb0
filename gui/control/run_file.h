// SPDX-License-Identifier: GPL-3.0-or-later
// A run file (docs/inputs/run.md) for a plan: what a plan leaves open, with few choices.
//
// The plan says layouts, batch, lengths and the place of the KL penalty; the file says prompts,
// reward, learning rates and steps. Keys that it leaves out have their defaults. Plain values.
#pragma once

#include <QString>
#include <QStringList>
#include <string>

#include "planner/plan/plan.h"

namespace tessera::gui {

struct RunFileRequest {
  QString prompts;                     // JSON lines or Parquet; from the working directory on
  QString reward = "fraction";         // a rule; unused where the plan has a reward model
  double learning_rate = 1e-6;         // of the actor
  double critic_learning_rate = 1e-5;  // unused where the plan has no critic
  int steps = 100;
  int save_every = 0;  // steps between checkpoints; 0 = none
};

/// Rules that score a response by the prompt's ground truth and need nothing else, as run files
/// name them.
const QStringList& rewardRules();

/// Why no file can be written so, in a sentence; empty where one can.
QString whyNoRunFile(const RunFileRequest& request);

/// The file. It names prompts in full: a run resolves them from the working directory that it is
/// started in, which need not be the window's. Precondition: whyNoRunFile() says nothing.
std::string run_file_text(const RunFileRequest& request, const Plan& plan);

}  // namespace tessera::gui
