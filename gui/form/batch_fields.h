// SPDX-License-Identifier: GPL-3.0-or-later
// What of a workload a question may change: algorithm, prompts, samples, lengths.
//
// Each number is a field and a slider that reaches some octaves to both sides of what the workload
// says.
// GUI thread; its widgets belong to the form that they are added to.
#pragma once

#include <QComboBox>
#include <QGridLayout>
#include <QObject>
#include <QSpinBox>
#include <array>
#include <optional>
#include <string>

#include "gui/document/plan_query.h"
#include "gui/form/step_slider.h"

namespace tessera::gui {

class BatchFields : public QObject {
  Q_OBJECT

 public:
  /// Adds a row for each at the layout's end.
  explicit BatchFields(QGridLayout* layout, QObject* parent = nullptr);

  /// The workload's own numbers, or those that are asked instead; nullopt = there is none, and
  /// nothing to change. Says nothing.
  void show(const std::optional<Workload>& own, const WorkloadChange& change);
  /// 0 where a field has what the workload says itself.
  WorkloadChange change() const;
  /// A slider is held.
  bool isSliding() const;

 signals:
  void changed();
  /// Before changed(): the workload has other calls, and by them other roles.
  void algorithmChanged();

 private:
  struct Field {
    QSpinBox* box = nullptr;
    StepSlider* slider = nullptr;
    std::int64_t own = 0;  // 0 = the workload cannot be read
  };

  Field add(QGridLayout* layout, const QString& label);
  static void show(Field& field, std::int64_t own, std::int64_t asked,
                   const std::vector<double>& steps);
  static std::int64_t asked(const Field& field);
  /// Mini-batches are equal: their number divides the prompts.
  void roundPrompts();

  void addAlgorithm(QGridLayout* layout);
  void addLimit(QGridLayout* layout);
  std::int64_t longest() const;  // 0 = not known
  void showLimit();
  void showAlgorithm(const std::optional<Workload>& own, const std::string& asked);

  QComboBox* algorithm_ = nullptr;
  QSpinBox* limit_ = nullptr;    // of a response's length
  std::int64_t longest_ = 0;     // that is asked; 0 = as goes with the mean
  std::optional<Workload> own_;  // nullopt = it cannot be read
  std::string own_algorithm_;    // empty = the workload cannot be read
  Field prompts_, samples_, prompt_tokens_, tokens_;
};

}  // namespace tessera::gui
