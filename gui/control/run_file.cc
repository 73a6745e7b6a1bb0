// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/run_file.h"

#include <QFileInfo>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

// YAML's single quotes know one escape: a doubled quote.
std::string quoted(const QString& text) {
  return "'" + QString(text).replace("'", "''").toStdString() + "'";
}

// A number with a point, as every YAML reader takes it for one: "1.0e-06".
std::string rate_text(double rate) {
  const QString text = QString::number(rate, 'g', 6);
  const qsizetype exponent = text.indexOf('e');
  if (text.contains('.') || exponent < 0) return text.toStdString();
  return (text.left(exponent) + ".0" + text.mid(exponent)).toStdString();
}

}  // namespace

const QStringList& rewardRules() {
  static const QStringList rules{"fraction",  "exact",          "numeric",
                                 "gsm8k",     "gsm8k_flexible", "math",
                                 "math_dapo", "format",         "by_data_source"};
  return rules;
}

QString whyNoRunFile(const RunFileRequest& request) {
  if (request.prompts.isEmpty()) return Words::tr("A file of prompts is missing.");
  if (!QFileInfo(request.prompts).isFile()) {
    return Words::tr("%1: no such file").arg(request.prompts);
  }
  return {};
}

std::string run_file_text(const RunFileRequest& request, const Plan& plan) {
  const bool critic = plan.find(Role::critic) != nullptr;
  const QString prompts = QFileInfo(request.prompts).absoluteFilePath();
  std::string text =
      "# What is not here is the plan's, or has its default (docs/inputs/run.md).\n"
      "version: 1\ndata:\n  train_files: " +
      quoted(prompts) + "\nalgorithm:\n  adv_estimator: " + (critic ? "gae" : "grpo") +
      "\nactor_rollout_ref:\n  actor:\n    optim: {lr: " + rate_text(request.learning_rate) + "}\n";
  if (critic) text += "critic:\n  optim: {lr: " + rate_text(request.critic_learning_rate) + "}\n";
  if (plan.find(Role::reward) == nullptr) {
    text += "reward:\n  function: " + request.reward.toStdString() + "\n";
  }
  text += "trainer:\n  total_training_steps: " + std::to_string(request.steps) + "\n";
  if (request.save_every > 0) text += "  save_freq: " + std::to_string(request.save_every) + "\n";
  return text;
}

}  // namespace tessera::gui
