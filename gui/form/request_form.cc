// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/request_form.h"

#include <QFileDialog>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/form/fixed_words.h"
#include "gui/form/form_row.h"
#include "gui/form/sorted_presets.h"
#include "gui/topology/node_topology.h"
#include "gui/translations/said.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "planner/space/placements.h"

namespace tessera::gui {
namespace {

QString asOpened() { return Words::tr("as in the opened plan"); }
QString freeWord() { return Words::tr("free"); }

/// The entry with this text, added when it is none of them.
void chooseText(QComboBox* box, const QString& text) {
  int index = box->findText(text);
  if (index < 0) {
    box->insertItem(0, text);
    index = 0;
  }
  box->setCurrentIndex(index);
}

void chooseName(QComboBox* box, const std::string& name) {
  chooseText(box, name.empty() ? asOpened() : QString::fromStdString(name));
}

/// The placement of these words, which the list has in the window's language.
void choosePlacement(QComboBox* box, const QString& words) {
  if (box->findData(words) < 0) box->insertItem(0, said(words.toStdString()), words);
  box->setCurrentIndex(box->findData(words));
}

std::string nameIn(const QComboBox* box) {
  return box->currentText() == asOpened() ? std::string() : box->currentText().toStdString();
}

bool changesByWheel(const QWidget* field) {
  return qobject_cast<const QAbstractSpinBox*>(field) != nullptr ||
         qobject_cast<const QComboBox*>(field) != nullptr;
}

}  // namespace

RequestForm::RequestForm(QWidget* parent) : QWidget(parent) {
  auto* layout = new QVBoxLayout(this);
  auto* choices = new QGridLayout;
  choices->setColumnStretch(1, 1);
  model_ = addChoice(choices, Words::tr("&Model"), "models", "", "config.json (*.json)");
  cluster_ = addChoice(choices, Words::tr("&Cluster"), "clusters", ".yaml",
                       Words::tr("Cluster (*.yaml *.yml)"));
  addTopology(choices);
  workload_ = addChoice(choices, Words::tr("&Workload"), "workloads", ".yaml",
                        Words::tr("Workload (*.yaml *.yml)"));
  batch_ = new BatchFields(choices, this);
  nodes_ = addCount(choices, Words::tr("&Nodes"));
  gpus_ = addCount(choices, Words::tr("&GPUs per node"));
  addSettings(choices);
  layout->addLayout(choices);
  layout->addSpacing(8);
  layout->addWidget(new QLabel(Words::tr("<b>Fixed degrees</b> (empty = free)")));
  degrees_ = new DegreeGrid;
  layout->addWidget(degrees_);
  others_ = new QLineEdit;
  others_->setPlaceholderText("actor.zero=3 actor.recompute=full");
  layout->addWidget(labelOf(Words::tr("Other &settings"), others_));
  layout->addWidget(others_);
  auto* free = new QPushButton(Words::tr("Free all"));
  layout->addWidget(free, 0, Qt::AlignRight);
  layout->addStretch(1);
  connect(batch_, &BatchFields::changed, this, &RequestForm::changed);
  connect(batch_, &BatchFields::algorithmChanged, this, [this] { showWorkload(query()); });
  connect(degrees_, &DegreeGrid::changed, this, &RequestForm::changed);
  connect(others_, &QLineEdit::textEdited, this, &RequestForm::changed);
  connect(free, &QPushButton::clicked, this, &RequestForm::freeAll);
  pause_.setSingleShot(true);
  pause_.setInterval(120);
  connect(&pause_, &QTimer::timeout, this, &RequestForm::tell);
  connect(cluster_, &QComboBox::currentTextChanged, this, [this] { showCluster({}); });
  connect(workload_, &QComboBox::currentTextChanged, this, [this] {
    PlanQuery other = query();
    other.batch = {};  // a new workload begins with its own numbers
    showWorkload(other);
  });
  for (QWidget* child : findChildren<QWidget*>()) {
    child->installEventFilter(this);
    if (child->focusPolicy() == Qt::WheelFocus) child->setFocusPolicy(Qt::StrongFocus);
  }
  pause_.stop();  // filling the lists was no edit
}

QComboBox* RequestForm::addChoice(QGridLayout* layout, const QString& label, const char* kind,
                                  const char* extension, const QString& filter) {
  auto* box = new QComboBox;
  box->addItems(sortedPresets(kind, extension));
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(14);
  auto* open = new QPushButton("...");
  open->setToolTip(Words::tr("Open a file"));
  open->setAccessibleName(Words::tr("Open a file: %1").arg(QString(label).remove('&')));
  open->setFixedWidth(28);
  const int row = layout->rowCount();
  layout->addWidget(labelOf(label, box), row, 0);
  layout->addWidget(box, row, 1);
  layout->addWidget(open, row, 2);
  connect(box, &QComboBox::currentTextChanged, this, &RequestForm::changed);
  connect(open, &QPushButton::clicked, this, [this, box, filter] {
    const QString file = QFileDialog::getOpenFileName(this, Words::tr("Open a file"), {}, filter);
    if (!file.isEmpty()) chooseText(box, file);
  });
  return box;
}

// What `nvidia-smi topo -m` printed; the number of GPUs begins with the one that is there.
void RequestForm::addTopology(QGridLayout* layout) {
  topology_ = new QLineEdit;
  topology_->setPlaceholderText(Words::tr("as the cluster says"));
  topology_->setClearButtonEnabled(true);
  topology_->setToolTip(
      Words::tr("A file of what nvidia-smi topo -m prints on a node: its GPUs, NVLink and network "
                "cards replace the cluster's"));
  auto* open = new QPushButton("...");
  open->setToolTip(Words::tr("Open a file"));
  open->setFixedWidth(28);
  const int row = layout->rowCount();
  layout->addWidget(labelOf(Words::tr("Topolog&y"), topology_), row, 0);
  layout->addWidget(topology_, row, 1);
  layout->addWidget(open, row, 2);
  open->setAccessibleName(Words::tr("Open a file: %1").arg(topology_->accessibleName()));
  connect(topology_, &QLineEdit::textChanged, this, [this] {
    showCluster({});
    changed();
  });
  connect(open, &QPushButton::clicked, this, [this] {
    const QString file = QFileDialog::getOpenFileName(this, Words::tr("Open a file"), {},
                                                      Words::tr("Topology (*.txt)"));
    if (!file.isEmpty()) topology_->setText(file);
  });
}

QSpinBox* RequestForm::addCount(QGridLayout* layout, const QString& label) {
  auto* box = new QSpinBox;
  box->setRange(1, 1'000'000);  // what a cluster may have its reader says
  const int row = layout->rowCount();
  layout->addWidget(labelOf(label, box), row, 0);
  layout->addWidget(box, row, 1, 1, 2);
  connect(box, &QSpinBox::valueChanged, this, &RequestForm::changed);
  return box;
}

QComboBox* RequestForm::addList(QGridLayout* layout, const QString& label) {
  auto* box = new QComboBox;
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(14);
  const int row = layout->rowCount();
  layout->addWidget(labelOf(label, box), row, 0);
  layout->addWidget(box, row, 1, 1, 2);
  connect(box, &QComboBox::currentTextChanged, this, &RequestForm::changed);
  return box;
}

void RequestForm::addSettings(QGridLayout* layout) {
  engine_ = addList(layout, Words::tr("Eng&ine"));
  engine_->addItem(toText(kAnyEngine));
  for (const std::string& name : engine_names()) engine_->addItem(QString::fromStdString(name));
  engine_->setCurrentText(toText(kOwnEngine));
  objective_ = addList(layout, Words::tr("&Objective"));
  for (const std::string& name : objective_names())
    objective_->addItem(objectiveText(name), QString::fromStdString(name));
  risk_ = new QDoubleSpinBox;
  risk_->setDecimals(4);
  risk_->setRange(100 * kLeastRisk, 100 * kMostRisk);
  risk_->setValue(100 * kDefaultRisk);
  risk_->setSuffix(" %");
  risk_->setToolTip(Words::tr("The probability of running out of memory that a plan may have"));
  risk_slider_ = addSliderRow(layout, Words::tr("Memory risk"), risk_);
  risk_slider_->setSteps(decade_steps(100 * kLeastRisk, 100 * kMostRisk));
  risk_slider_->showNumber(risk_->value());
  connect(risk_slider_, &QSlider::sliderReleased, this, &RequestForm::changed);
  connect(risk_slider_, &StepSlider::numberChosen, risk_, &QDoubleSpinBox::setValue);
  connect(risk_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
    risk_slider_->showNumber(value);
    changed();
  });
  placement_ = addList(layout, Words::tr("&Placement"));
  addPrice(layout);
}

// Of the objective "cost", and of the costs that are shown.
void RequestForm::addPrice(QGridLayout* layout) {
  price_ = new QDoubleSpinBox;
  price_->setDecimals(2);
  price_->setRange(0, 1e6);
  price_->setSpecialValueText(Words::tr("as the cluster says"));
  price_->setToolTip(Words::tr("What a GPU costs an hour, in any money"));
  const int row = layout->rowCount();
  layout->addWidget(labelOf(Words::tr("Price a GP&U hour"), price_), row, 0);
  layout->addWidget(price_, row, 1, 1, 2);
  connect(price_, &QDoubleSpinBox::valueChanged, this, &RequestForm::changed);
}

void RequestForm::freeAll() {
  degrees_->setDegrees({});
  choosePlacement(placement_, kFree);
  others_->clear();
  changed();
}

// Undo is the window's, of whole edits, wherever the cursor is. The wheel is the page's over a
// field that has not the keys.
bool RequestForm::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return true;
    }
  }
  const auto* field = qobject_cast<QWidget*>(watched);
  if (event->type() == QEvent::Wheel && changesByWheel(field) && !field->hasFocus()) {
    event->ignore();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

// Roles and placements that the workload has.
void RequestForm::showWorkload(const PlanQuery& query) {
  Problems unheard;  // the answer says them
  std::optional<Workload> workload;
  if (!query.workload.empty()) {
    workload = read_workload(query.workload, unheard);
  } else if (query.opened) {
    workload = query.opened->workload;
  }
  batch_->show(workload, query.batch);
  if (workload) workload = resized(*std::move(workload), query.batch);
  const std::vector<Role> roles = workload ? roles_of(*workload) : std::vector<Role>{};
  degrees_->setRoles(roles);
  const QSignalBlocker quiet(placement_);
  const QString kept = placement_->currentData().toString();
  placement_->clear();
  placement_->addItem(freeWord(), kFree);
  for (const Placement& placement : all_placements(roles, true)) {  // as the search has them
    const std::string words = describe(placement);
    placement_->addItem(said(words), QString::fromStdString(words));
  }
  placement_->setCurrentIndex(std::max(0, placement_->findData(kept)));
}

// A new cluster begins with its own size.
void RequestForm::showCluster(const PlanQuery& query) {
  const QSignalBlocker quiet_nodes(nodes_), quiet_gpus(gpus_);
  Problems unheard;
  const std::string name = nameIn(cluster_);
  std::optional<ClusterSpec> cluster;
  if (!name.empty()) {
    cluster = read_cluster_spec(name, unheard);
  } else if (opened_) {
    cluster = opened_->cluster;
  }
  const auto bounded = [](std::int64_t count) {
    return static_cast<int>(std::clamp<std::int64_t>(count, 1, 1'000'000));
  };
  if (cluster && !topology_->text().isEmpty()) {
    const auto node = read_topology(topology_->text().toStdString(), unheard);
    if (node) cluster->gpus_per_node = node->gpus;
  }
  if (cluster) {
    nodes_->setValue(bounded(cluster->nodes));
    gpus_->setValue(bounded(cluster->gpus_per_node));
  }
  const bool several = cluster && !cluster->groups.empty();
  const QString why = Words::tr("The cluster's file says how many nodes of each GPU type it has");
  for (QSpinBox* size : {nodes_, gpus_}) {
    size->setEnabled(!several);
    size->setToolTip(several ? why : QString());
  }
  if (several) return;  // the answer refuses another size
  if (query.nodes > 0) nodes_->setValue(bounded(query.nodes));
  if (query.gpus_per_node > 0) gpus_->setValue(bounded(query.gpus_per_node));
}

bool RequestForm::isSliding() const {
  // The lists are filled before there is a slider.
  return batch_->isSliding() || (risk_slider_ != nullptr && risk_slider_->isSliderDown());
}

// While a slider is held what it passes is asked at even intervals; else the last change counts.
void RequestForm::changed() {
  if (!isSliding() || !pause_.isActive()) pause_.start();
  emit edited();
}

void RequestForm::settle() {
  if (isSettled()) return;
  pause_.stop();
  tell();
}

void RequestForm::tell() {
  if (isSliding()) {
    emit sliderMoved();
    return;
  }
  const PlanQuery now = query();
  degrees_->setQuestion(now);
  emit queryChanged(now);
}

void RequestForm::choose(FileKind kind, const QString& file) {
  if (kind == FileKind::topology) return topology_->setText(file);
  QComboBox* const box = kind == FileKind::model     ? model_
                         : kind == FileKind::cluster ? cluster_
                                                     : workload_;
  chooseText(box, file);
}

PlanQuery RequestForm::query() const {
  PlanQuery query{nameIn(model_), nameIn(cluster_), nameIn(workload_)};
  query.nodes = nodes_->value();
  query.gpus_per_node = gpus_->value();
  query.engine = engine_->currentText().toStdString();
  query.objective = objective_->currentData().toString().toStdString();
  query.risk = risk_->value() / 100;
  query.price_per_gpu_hour = price_->value();
  query.topology = topology_->text().toStdString();
  query.batch = batch_->change();
  query.opened = opened_;
  for (const auto& [key, degree] : degrees_->degrees()) {
    query.fixed.push_back(std::string(name_of(key.first)) + "." + std::string(name_of(key.second)) +
                          "=" + degree.toStdString());
  }
  for (const QString& word : others_->text().split(' ', Qt::SkipEmptyParts)) {
    query.fixed.push_back(word.toStdString());
  }
  if (const QString words = placement_->currentData().toString(); !words.isEmpty()) {
    query.fixed.push_back("placement=" + words.toStdString());
  }
  return query;
}

void RequestForm::setQuery(const PlanQuery& query) {
  std::vector<std::unique_ptr<QSignalBlocker>> quiet;
  for (QWidget* widget : findChildren<QWidget*>()) {
    quiet.push_back(std::make_unique<QSignalBlocker>(widget));
  }
  opened_ = query.opened;
  chooseName(model_, query.model);
  chooseName(cluster_, query.cluster);
  topology_->setText(QString::fromStdString(query.topology));
  chooseName(workload_, query.workload);
  chooseText(engine_, QString::fromStdString(query.engine));
  objective_->setCurrentIndex(objective_->findData(QString::fromStdString(query.objective)));
  risk_->setValue(100 * query.risk);
  risk_slider_->showNumber(risk_->value());
  price_->setValue(query.price_per_gpu_hour);
  showCluster(query);
  showWorkload(query);
  const FixedWords words = sorted(query.fixed, *degrees_);
  degrees_->setDegrees(words.degrees);
  choosePlacement(placement_, words.placement);
  others_->setText(words.others.join(' '));
  pause_.stop();
  degrees_->setQuestion(query);
}

}  // namespace tessera::gui
