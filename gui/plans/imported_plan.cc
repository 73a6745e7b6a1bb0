// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/imported_plan.h"

#include <QStringList>
#include <memory>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

QString notice_of(const std::string& file, const Imported& imported, const Pricing& pricing) {
  QStringList lines;
  for (const std::string& note : pricing.notes) lines << said(note);
  for (const std::string& note : imported.notes) lines << said(note);
  for (const IgnoredKey& key : imported.ignored) {
    lines << Words::tr("%1:%2: %3 is ignored: %4")
                 .arg(toText(file), toText(key.place), toText(key.key), said(key.why));
  }
  return lines.join('\n');
}

}  // namespace

std::optional<ImportedPlan> imported_plan(const std::string& file, const PlanQuery& question,
                                          Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  auto cluster = cluster_of(question, problems);
  if (!text || !cluster) return std::nullopt;
  const auto calibration = calibration_for_cluster(*cluster, problems);
  if (!calibration) return std::nullopt;
  ImportOptions options;
  options.cluster = *std::move(cluster);  // of a size that the file states
  options.allow_unknown = true;           // they are told
  auto imported = import_config(*text, file, options, problems);
  if (!imported) return std::nullopt;
  Plan plan = std::move(imported->plan);
  const Pricing pricing = price(plan, *calibration, imported->memory_share);
  state_constants(plan, *calibration);
  return ImportedPlan{std::make_shared<const Plan>(std::move(plan)),
                      notice_of(file, *imported, pricing)};
}

}  // namespace tessera::gui
