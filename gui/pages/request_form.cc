// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/request_form.h"

#include <QFileDialog>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <array>

#include "cost_models/documents/preset.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "planner/space/placements.h"

namespace tessera::gui {
namespace {

constexpr std::array kFields{Field::tp, Field::pp, Field::dp, Field::gpus};

QString toText(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// The entry with this text, added when it is none of them.
void choose(QComboBox* box, const QString& text) {
  int index = box->findText(text);
  if (index < 0) {
    box->insertItem(0, text);
    index = 0;
  }
  box->setCurrentIndex(index);
}

}  // namespace

RequestForm::RequestForm(QWidget* parent) : QWidget(parent) {
  auto* layout = new QVBoxLayout(this);
  auto* choices = new QGridLayout;
  choices->setColumnStretch(1, 1);
  model_ = addChoice(choices, "&Model", "models", "", "config.json (*.json)");
  cluster_ = addChoice(choices, "&Cluster", "clusters", ".yaml", "Cluster (*.yaml *.yml)");
  workload_ = addChoice(choices, "&Workload", "workloads", ".yaml", "Workload (*.yaml *.yml)");
  const auto add_count = [&](const QString& text) {
    auto* box = new QSpinBox;
    box->setRange(1, 100000);
    box->setKeyboardTracking(false);
    box->setAccessibleName(text);
    auto* label = new QLabel(text);
    label->setBuddy(box);
    choices->addWidget(label, choices->rowCount(), 0);
    choices->addWidget(box, choices->rowCount() - 1, 1, 1, 2);
    connect(box, &QSpinBox::valueChanged, this, &RequestForm::changed);
    return box;
  };
  nodes_ = add_count("&Nodes");
  gpus_ = add_count("&GPUs per node");
  addPlacements(choices);
  layout->addLayout(choices);
  auto* heading = new QLabel("<b>Fixed degrees</b> (empty = free)");
  layout->addSpacing(8);
  layout->addWidget(heading);
  auto* degrees = new QGridLayout;
  addDegrees(degrees);
  layout->addLayout(degrees);
  auto* free = new QPushButton("Free all");
  layout->addWidget(free, 0, Qt::AlignRight);
  layout->addStretch(1);
  connect(free, &QPushButton::clicked, this, [this] {
    for (auto& [key, box] : degrees_) box->setCurrentText({});
    placement_->setCurrentIndex(0);
    changed();
  });
  pause_.setSingleShot(true);
  pause_.setInterval(120);
  connect(&pause_, &QTimer::timeout, this, [this] { emit queryChanged(query()); });
  connect(cluster_, &QComboBox::currentTextChanged, this, &RequestForm::clusterChanged);
  connect(workload_, &QComboBox::currentTextChanged, this, &RequestForm::workloadChanged);
}

QComboBox* RequestForm::addChoice(QGridLayout* layout, const QString& label, const char* kind,
                                  const char* extension, const QString& filter) {
  auto* box = new QComboBox;
  for (const std::string& name : preset_names(kind, extension)) {
    box->addItem(QString::fromStdString(name));
  }
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(14);
  auto* text = new QLabel(label);
  text->setBuddy(box);
  box->setAccessibleName(QString(label).remove('&'));
  auto* open = new QPushButton("...");
  open->setToolTip("Open a file");
  open->setAccessibleName("Open a file: " + QString(label).remove('&'));
  open->setFixedWidth(28);
  const int row = layout->rowCount();
  layout->addWidget(text, row, 0);
  layout->addWidget(box, row, 1);
  layout->addWidget(open, row, 2);
  connect(box, &QComboBox::currentTextChanged, this, &RequestForm::changed);
  connect(open, &QPushButton::clicked, this, [this, box, filter] {
    const QString file = QFileDialog::getOpenFileName(this, "Open a file", {}, filter);
    if (!file.isEmpty()) choose(box, file);
  });
  return box;
}

void RequestForm::addPlacements(QGridLayout* layout) {
  placement_ = new QComboBox;
  placement_->setAccessibleName("Placement");
  placement_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  placement_->setMinimumContentsLength(14);
  auto* label = new QLabel("&Placement");
  label->setBuddy(placement_);
  const int row = layout->rowCount();
  layout->addWidget(label, row, 0);
  layout->addWidget(placement_, row, 1, 1, 2);
  connect(placement_, &QComboBox::currentTextChanged, this, &RequestForm::changed);
}

void RequestForm::addDegrees(QGridLayout* layout) {
  for (std::size_t c = 0; c < kFields.size(); ++c) {
    layout->addWidget(new QLabel(toText(name_of(kFields[c]))), 0, static_cast<int>(c) + 1,
                      Qt::AlignHCenter);
  }
  for (std::size_t r = 0; r < kEveryRole.size(); ++r) {
    const Role role = kEveryRole[r];
    layout->addWidget(new QLabel(toText(name_of(role))), static_cast<int>(r) + 1, 0);
    for (std::size_t c = 0; c < kFields.size(); ++c) {
      if (role == Role::rollout && kFields[c] == Field::pp) continue;
      auto* box = new QComboBox;
      box->setEditable(true);
      box->addItems({"", "1", "2", "4", "8", "16", "32", "64"});
      box->setMinimumContentsLength(2);
      box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
      box->setAccessibleName(toText(name_of(role)) + "." + toText(name_of(kFields[c])));
      layout->addWidget(box, static_cast<int>(r) + 1, static_cast<int>(c) + 1);
      degrees_[{role, kFields[c]}] = box;
      connect(box, &QComboBox::currentTextChanged, this, &RequestForm::changed);
    }
  }
}

// Roles and placements that the workload has.
void RequestForm::workloadChanged() {
  Problems problems;
  const auto workload = read_workload(workload_->currentText().toStdString(), problems);
  const std::vector<Role> roles = workload ? roles_of(*workload) : std::vector<Role>{};
  for (auto& [key, box] : degrees_) {
    const bool present = std::find(roles.begin(), roles.end(), key.first) != roles.end();
    const QSignalBlocker quiet(box);
    if (!present) box->setCurrentText({});
    box->setEnabled(present);
  }
  const QSignalBlocker quiet(placement_);
  const QString kept = placement_->currentText();
  placement_->clear();
  placement_->addItem("free");
  for (const Placement& placement : all_placements(roles)) {
    placement_->addItem(QString::fromStdString(describe(placement)));
  }
  placement_->setCurrentIndex(std::max(0, placement_->findText(kept)));
}

// A new cluster begins with its own size.
void RequestForm::clusterChanged() {
  Problems problems;
  const auto cluster = read_cluster_spec(cluster_->currentText().toStdString(), problems);
  if (!cluster) return;
  const QSignalBlocker quiet_nodes(nodes_), quiet_gpus(gpus_);
  nodes_->setValue(static_cast<int>(cluster->nodes));
  gpus_->setValue(static_cast<int>(cluster->gpus_per_node));
}

void RequestForm::changed() { pause_.start(); }

PlanQuery RequestForm::query() const {
  PlanQuery query{model_->currentText().toStdString(), cluster_->currentText().toStdString(),
                  workload_->currentText().toStdString()};
  query.nodes = nodes_->value();
  query.gpus_per_node = gpus_->value();
  for (const auto& [key, box] : degrees_) {
    if (box->currentText().trimmed().isEmpty()) continue;
    query.fixed.push_back(std::string(name_of(key.first)) + "." + std::string(name_of(key.second)) +
                          "=" + box->currentText().trimmed().toStdString());
  }
  if (placement_->currentIndex() > 0) {
    query.fixed.push_back("placement=" + placement_->currentText().toStdString());
  }
  return query;
}

void RequestForm::setQuery(const PlanQuery& query) {
  choose(model_, QString::fromStdString(query.model));
  choose(cluster_, QString::fromStdString(query.cluster));
  choose(workload_, QString::fromStdString(query.workload));
  clusterChanged();
  workloadChanged();
  if (query.nodes > 0) nodes_->setValue(static_cast<int>(query.nodes));
  if (query.gpus_per_node > 0) gpus_->setValue(static_cast<int>(query.gpus_per_node));
  Problems problems;
  const FixedSettings fixed = parse_settings(query.fixed, problems);
  for (auto& [key, box] : degrees_) {
    const auto value = fixed.find(key.first, key.second);
    box->setCurrentText(value ? QString::number(*value) : QString());
  }
  const int placement = placement_->findText(QString::fromStdString(fixed.placement));
  placement_->setCurrentIndex(std::max(0, placement));
  pause_.stop();
  emit queryChanged(this->query());
}

}  // namespace tessera::gui
