// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/document.h"

#include <QFileInfo>
#include <QStringList>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gui/document/words.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

bool fixes(const PlanQuery& question, const std::string& setting) {
  return std::find(question.fixed.begin(), question.fixed.end(), setting) != question.fixed.end();
}

// A size that a question leaves to the cluster's file is the one that its plan has.
bool is_freer(const FreerAnswer& one, const PlanQuery& than) {
  const std::vector<std::string>& fixed = one.question.fixed;
  PlanQuery same = one.question;
  same.fixed = than.fixed;
  if (same.nodes == 0 && than.nodes == one.plan->cluster.nodes) same.nodes = than.nodes;
  if (same.gpus_per_node == 0 && than.gpus_per_node == one.plan->cluster.gpus_per_node) {
    same.gpus_per_node = than.gpus_per_node;
  }
  const auto also = [&](const std::string& setting) { return fixes(than, setting); };
  return same == than && fixed.size() < than.fixed.size() &&
         std::all_of(fixed.begin(), fixed.end(), also);
}

}  // namespace

bool Document::stale() const {
  if (!plan) return false;
  return answered != question || none_fits.has_value() || !problems.empty();
}

FileStamp stamp_of(const QString& file) {
  const std::filesystem::path path = file.toStdString();
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return {};
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return {};
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count(),
          static_cast<std::int64_t>(bytes)};
}

void say_saved(Document& document, History<Edit>& edits, const QString& file, bool answers) {
  document.file = file;
  document.in_file = document.plan;
  const QString path = QFileInfo(file).absoluteFilePath();
  edits.each([&](Edit& edit) {
    const bool here = !edit.file.isEmpty() && QFileInfo(edit.file).absoluteFilePath() == path;
    if (here) edit.file.clear();
  });
  if (answers) edits.replace({document.question, document.plan, file, stamp_of(file)});
}

std::vector<FreerAnswer> freer_than(const PlanQuery& question, std::vector<FreerAnswer> known) {
  std::erase_if(known, [&](const FreerAnswer& answer) { return !is_freer(answer, question); });
  return known;
}

QStringList fixed_beyond(const PlanQuery& question, const PlanQuery& freer) {
  QStringList settings;
  for (const std::string& setting : question.fixed) {
    if (!fixes(freer, setting)) settings << QString::fromStdString(setting);
  }
  return settings;
}

std::vector<std::string> fixed_everywhere(const Document& document) {
  if (!document.answered) return {};
  std::vector<std::string> settings = document.answered->fixed;
  for (const FreerAnswer& freer : document.freer) {
    std::erase_if(settings, [&](const std::string& one) { return !fixes(freer.question, one); });
  }
  return settings;
}

QString title_of(const Document& document) {
  const QString name =
      document.file.isEmpty() ? Words::tr("unsaved plan") : QFileInfo(document.file).fileName();
  return name + (document.saved() && document.valid() ? "" : "*");
}

}  // namespace tessera::gui
