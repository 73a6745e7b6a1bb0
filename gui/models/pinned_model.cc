// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/pinned_model.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "cost_models/documents/preset.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/plans/plan_apart.h"
#include "gui/translations/said.h"
#include "planner/plan/placement.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {
namespace {

using Says = std::function<QString(const Plan&)>;

QString layout_text(const Plan& plan, Role role) {
  const RolePlan* found = plan.find(role);
  return found ? QString::fromStdString(describe_layout(plan, *found)) : QString("-");
}

QString phase_text(const Plan& plan, Phase phase) {
  const auto found = plan.prediction.phases_s.find(phase);
  return found == plan.prediction.phases_s.end() ? QString("-") : secondsText(found->second);
}

QString reshard_text(const Plan& plan) {
  QStringList parts;
  for (const PlannedReshard& pair : plan.reshard) parts << bytesText(pair.bytes_received);
  return parts.isEmpty() ? QString("-") : parts.join(", ");
}

QString row_name(StepPart part) {
  switch (part) {
    case StepPart::communication:
      return Words::tr("Exposed communication");
    case StepPart::bubble:
      return Words::tr("Pipeline bubble");
    case StepPart::host:
      return Words::tr("Host and copies");
    case StepPart::computation:
      break;
  }
  return Words::tr("Computation");
}

// Iterator of the one with the shortest step, and with the longest.
auto fastest_and_slowest(const std::vector<SharedPlan>& plans) {
  return std::minmax_element(plans.begin(), plans.end(),
                             [](const SharedPlan& a, const SharedPlan& b) {
                               return a->prediction.step_s < b->prediction.step_s;
                             });
}

QString workload_text(const Workload& workload) {
  return Words::tr("%1: %2 x %3 sequences of %4 + %5 tokens")
      .arg(QString::fromStdString(workload.algorithm), countText(workload.prompts_per_step),
           countText(workload.samples_per_prompt), countText(workload.prompt_tokens),
           countText(workload.response_tokens.mean));
}

// A preset by its name; a folder elsewhere by its path.
QString model_text(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::vector<std::string> presets = preset_names("models", "");
  const bool preset = path.find("configs/models/") != path.npos &&
                      std::find(presets.begin(), presets.end(), name) != presets.end();
  return QString::fromStdString(preset ? name : path);
}

using Said = std::vector<std::pair<QString, Says>>;

Said said_of_the_whole() {
  return {
      {Words::tr("Model"),
       [](const Plan& plan) { return model_text(plan.models.at("actor").path); }},
      {Words::tr("Cluster"),
       [](const Plan& plan) {
         return Words::tr("%1, %2 of %3 GPUs")
             .arg(QString::fromStdString(plan.cluster.name))
             .arg(gpus_of(plan))
             .arg(plan.cluster.gpus());
       }},
      {Words::tr("Workload"), [](const Plan& plan) { return workload_text(plan.workload); }},
      {Words::tr("Engine"), [](const Plan& plan) { return QString::fromStdString(plan.engine); }},
      {Words::tr("Placement"), [](const Plan& plan) { return said(describe_placement(plan)); }},
      {Words::tr("Step"),
       [](const Plan& plan) {
         return secondsText(plan.prediction.step_s, plan.prediction.step_error_s);
       }},
      {Words::tr("Tokens/s/GPU"),
       [](const Plan& plan) { return countText(plan.prediction.tokens_per_s_per_gpu); }},
      {Words::tr("Peak memory"),
       [](const Plan& plan) { return bytesText(plan.prediction.peak_bytes); }}};
}

Said said_of_roles_and_phases() {
  Said rows;
  for (const Role role : kEveryRole) {
    rows.emplace_back(toText(name_of(role)),
                      [role](const Plan& plan) { return layout_text(plan, role); });
  }
  for (const Phase phase : kEveryPhase) {
    rows.emplace_back(Words::tr("%1, time").arg(toText(name_of(phase))),
                      [phase](const Plan& plan) { return phase_text(plan, phase); });
  }
  rows.emplace_back(Words::tr("Reshard, busiest rank"), reshard_text);
  return rows;
}

}  // namespace

void PinnedModel::pin(const SharedPlan& plan) {
  const bool known = std::any_of(plans_.begin(), plans_.end(), [&](const SharedPlan& other) {
    return other->roles == plan->roles && other->prediction == plan->prediction;
  });
  if (known) return;
  beginResetModel();
  if (count() == kMostPlans) plans_.erase(plans_.begin());
  plans_.push_back(plan);
  build();
  endResetModel();
}

void PinnedModel::unpin(int column) {
  if (column < 0 || column >= count()) return;
  beginResetModel();
  plans_.erase(plans_.begin() + column);
  build();
  endResetModel();
}

void PinnedModel::setPlans(std::vector<SharedPlan> plans) {
  beginResetModel();
  plans_ = std::move(plans);
  if (count() > kMostPlans) plans_.erase(plans_.begin() + kMostPlans, plans_.end());
  build();
  endResetModel();
}

void PinnedModel::setParts(const PartsByPlan& parts) {
  const bool same = std::ranges::equal(parts, parts_, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.parts == b.second.parts &&
           a.second.constants == b.second.constants;
  });
  if (same) return;
  beginResetModel();
  parts_ = parts;
  build();
  endResetModel();
}

void PinnedModel::setNames(const QStringList& names) {
  beginResetModel();
  names_ = names;
  endResetModel();
}

// "A", "B" where they have no names.
QString PinnedModel::nameOf(std::size_t plan) const {
  return names_.value(static_cast<int>(plan), QChar('A' + static_cast<int>(plan)));
}

void PinnedModel::build() {
  rows_.clear();
  if (plans_.empty()) return;
  const auto add = [this](const Said& all) {
    for (const auto& [name, says] : all) {
      Row row{name, {}};
      for (const SharedPlan& plan : plans_) row.values << says(*plan);
      const auto same = [&](const QString& value) { return value == row.values.front(); };
      const bool equal = std::all_of(row.values.begin(), row.values.end(), same);
      const bool said = count() > 1 ? !equal : row.values.front() != "-";
      if (said) rows_.push_back(std::move(row));
    }
  };
  add(said_of_the_whole());
  addParts();
  add(said_of_roles_and_phases());
}

// Seconds of each, and how many more than those of the fastest plan.
void PinnedModel::addParts() {
  std::vector<const StepParts*> known;
  for (const SharedPlan& plan : plans_) {
    const auto found = parts_.find(plan);
    if (found == parts_.end() || count() < 2) return;
    known.push_back(&found->second.parts);
  }
  const auto fastest = static_cast<std::size_t>(fastest_and_slowest(plans_).first - plans_.begin());
  for (const StepPart part : kEveryStepPart) {
    Row row{row_name(part), {}};
    bool differs = false;
    for (std::size_t plan = 0; plan < known.size(); ++plan) {
      const Seconds own = (*known[plan])[part], more = own - (*known[fastest])[part];
      row.values << (own > 0 ? secondsText(own) : QString("0 s"));
      if (more == 0) continue;
      row.values.back() += " (" + moreText(more) + ")";
      differs = true;
    }
    if (differs) rows_.push_back(std::move(row));
  }
}

QString PinnedModel::sentence() const {
  if (count() < 2) return {};
  const auto [fast, slow] = fastest_and_slowest(plans_);
  const auto named = [&](const auto& plan) {
    const auto parts = parts_.find(*plan);
    return NamedPlan{nameOf(static_cast<std::size_t>(plan - plans_.begin())), *plan,
                     parts == parts_.end() ? nullptr : &parts->second};
  };
  return apart_text(named(fast), named(slow));
}

int PinnedModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PinnedModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : count();
}

QVariant PinnedModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const QString& value = rows_[static_cast<std::size_t>(index.row())].values[index.column()];
  return role == Qt::DisplayRole || role == Qt::ToolTipRole ? QVariant(value) : QVariant();
}

QVariant PinnedModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || section < 0) return {};
  if (orientation == Qt::Horizontal) {
    return section < count() ? nameOf(static_cast<std::size_t>(section)) : QVariant();
  }
  return section < rowCount() ? rows_[static_cast<std::size_t>(section)].name : QVariant();
}

}  // namespace tessera::gui
