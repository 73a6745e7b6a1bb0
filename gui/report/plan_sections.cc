// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/explore/shown_answer.h"
#include "gui/models/colours.h"
#include "gui/report/figure.h"
#include "gui/report/mesh_figure.h"
#include "gui/report/sections.h"
#include "gui/translations/said.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

void add_row(Markup& to, const QString& name, const QString& value) {
  if (value.isEmpty()) return;
  to.open("tr");
  to.element("th", name);
  to.element("td", value);
  to.close();
}

QString words(const std::vector<std::string>& fixed) {
  QStringList list;
  for (const std::string& word : fixed) list << QString::fromStdString(word);
  return list.join(", ");
}

QString batch_text(const Workload& workload) {
  const QString numbers(Words::tr(
      "%1 prompts a step, %2 responses each; %3 prompt tokens, %4 of a response on average, %5 at "
      "most"));
  const QString algorithm = QString::fromStdString(workload.algorithm) + ", ";
  return algorithm + numbers.arg(workload.prompts_per_step)
                         .arg(workload.samples_per_prompt)
                         .arg(workload.prompt_tokens)
                         .arg(workload.response_tokens.mean, 0, 'f', 0)
                         .arg(workload.response_tokens.max);
}

void add_step(Markup& to, PhaseModel& phases) {
  to.element("h2", Words::tr("The step"));
  std::vector<FigureSpan> spans;
  for (const PhaseModel::Row& row : phases.rows()) {
    const QString name = toText(name_of(row.phase));
    const QString detail = Words::tr("%1, %2 from %3 on")
                               .arg(name, secondsText(row.seconds), secondsText(row.start_s));
    spans.push_back({row.block, row.start_s, row.seconds, name, detail, colourOf(row.phase)});
  }
  draw_spans(to, Words::tr("Predicted iteration"), phases.blocks(), spans, phases.step());
  add_table(to, phases);
}

void add_memory(Markup& to, const SharedPlan& plan, const std::optional<Calibration>& calibration) {
  to.element("h2", Words::tr("Memory"));
  MemoryModel memory;
  memory.setPlan(plan, calibration);
  if (!memory.problem().isEmpty()) {
    to.element("p", memory.problem(), {{"class", "warning"}});
    return;
  }
  std::vector<FigureSeries> series;
  for (const MemoryModel::Series& each : memory.series()) {
    series.push_back({each.name, each.colour, {each.bytes.begin(), each.bytes.end()}});
  }
  const FigureLimit limit{
      static_cast<double>(memory.limit()),
      Words::tr("usable %1 of %2").arg(bytesText(memory.limit()), bytesText(memory.device()))};
  draw_stacks(to, Words::tr("Rank %1, the fullest, by phase").arg(memory.rank()), byte_number,
              memory.phases(), series, limit);
  add_table(to, memory, MemoryModel::BadRole);
}

// Why the plan is slower than the one that it is held against, part by part.
void add_compared(Markup& to, const Session& session) {
  const auto pair = session.compared();
  if (!pair) return;
  PinnedModel compared;
  PartsByPlan parts;
  for (const NamedPlan& one : {pair->other, pair->shown}) {
    if (one.priced != nullptr) parts[one.plan] = *one.priced;
  }
  compared.setPlans({pair->other.plan, pair->shown.plan});
  compared.setNames({pair->other.name, pair->shown.name});
  compared.setParts(parts);
  to.element("h2", Words::tr("Compared with %1").arg(pair->other.name));
  to.element("p", apart_text(pair->other, pair->shown));
  if (compared.rowCount() > 0) add_table(to, compared);
}

void add_pinned(Markup& to, const PinnedModel& pinned) {
  if (pinned.count() < 2) return;
  to.element("h2", Words::tr("Pinned plans"));
  to.element("p", pinned.sentence());
  add_table(to, pinned);
}

}  // namespace

void add_question(Markup& to, const Document& document) {
  const PlanQuery& asked = document.question;
  const Plan* plan = document.valid() ? document.plan.get() : asked.opened.get();
  const auto named = [](const std::string& name, const std::string& otherwise) {
    return QString::fromStdString(name.empty() ? otherwise : name);
  };
  to.element("h2", Words::tr("The question"));
  to.open("div", {{"class", "wide"}});
  to.open("table");
  add_row(to, Words::tr("Model"), named(asked.model, plan ? plan->models.at("actor").path : ""));
  add_row(to, Words::tr("Cluster"), named(asked.cluster, plan ? plan->cluster.name : ""));
  if (plan != nullptr) {
    add_row(to, Words::tr("Size"),
            Words::tr("nodes: %1, of %2 %3 each")
                .arg(plan->cluster.nodes)
                .arg(plan->cluster.gpus_per_node)
                .arg(QString::fromStdString(plan->cluster.device.name)));
  }
  add_row(to, Words::tr("Workload"), named(asked.workload, ""));
  if (plan != nullptr) add_row(to, Words::tr("Batch"), batch_text(plan->workload));
  add_row(to, Words::tr("Engine"), QString::fromStdString(asked.engine));
  add_row(to, Words::tr("Objective"), QString::fromStdString(asked.objective));
  add_row(to, Words::tr("Memory risk"), QString::number(100 * asked.risk, 'g', 4) + " %");
  add_row(to, Words::tr("Fixed"), words(asked.fixed));
  to.close();
  to.close();
}

void add_shortage(Markup& to, const Document& document) {
  to.element("p", headline_of(*document.none_fits), {{"class", "failure"}});
  add_question(to, document);
  to.element("h2", Words::tr("Why nothing fits"));
  to.element("pre", saidLines(describe(*document.none_fits)));
}

void add_plan(Markup& to, Session& session) {
  const Plan& plan = *session.plan();
  const auto& calibration = session.calibration();
  const ShownAnswer shown = shown_answer(session);
  to.element("p", shown.line.text(), {{"class", "headline"}});
  add_question(to, session.document());
  add_compared(to, session);
  to.element("h2", Words::tr("Plans"));
  if (session.shownRow() > 0) {
    to.element("p", Words::tr("This report is of row %1.").arg(session.shownRow() + 1));
  }
  add_table(to, *session.plans());
  add_step(to, *session.phases());
  if (session.timeline()->facts()) {
    add_timeline(to, *session.timeline()->facts(), plan);
  }
  add_memory(to, session.plan(), calibration);
  if (session.reshard()->facts()) add_reshard(to, *session.reshard()->facts());
  to.element("h2", Words::tr("Mesh"));
  draw_mesh(to, session.plan());
  add_pinned(to, *session.pinned());
  to.element("h2", Words::tr("Why"));
  to.element("p", shown.proof);
  to.element("pre", saidLines(describe(plan, calibration ? &*calibration : nullptr)));
}

}  // namespace tessera::gui
