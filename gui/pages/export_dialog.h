// SPDX-License-Identifier: GPL-3.0-or-later
// Asks which pages and views are exported, as what, and into which folder. GUI thread.
#pragma once

#include <QCheckBox>
#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <vector>

#include "gui/pages/export_views.h"

namespace tessera::gui {

class ExportDialog : public QDialog {
  Q_OBJECT

 public:
  explicit ExportDialog(const std::vector<Exportable>& exportables, QWidget* parent = nullptr);

  /// At least one page or view in one format, or the report.
  ExportChoice choice() const;
  QString folder() const { return folder_->text().trimmed(); }

 private:
  QLayout* formats();
  QLayout* where();
  void chooseFolder();
  void checkAll(Qt::CheckState state);
  void allow();

  std::vector<Exportable> exportables_;
  QListWidget* list_;
  QCheckBox *png_, *svg_, *csv_, *json_, *html_;
  QLineEdit* folder_;
  QPushButton* write_;
};

}  // namespace tessera::gui
