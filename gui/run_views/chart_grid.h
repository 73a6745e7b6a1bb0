// SPDX-License-Identifier: GPL-3.0-or-later
// The charts of a run, two beside one another, without those that it has nothing for. GUI thread.
#pragma once

#include <QGridLayout>
#include <QStringList>
#include <QWidget>
#include <vector>

namespace tessera::gui {

class ChartGrid : public QWidget {
 public:
  explicit ChartGrid(QWidget* parent = nullptr);

  /// Behind those that are there. `stretch`: its share of the height.
  void add(QWidget* chart, const QString& name, int stretch);
  /// The others take the room of these.
  void leaveOut(const QStringList& names);

 private:
  void arrange();

  struct Part {
    QWidget* chart;
    QString name;
    int stretch;
  };
  std::vector<Part> parts_;
  QStringList left_out_;
  QGridLayout* grid_;
};

}  // namespace tessera::gui
