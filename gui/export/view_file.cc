// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/export/view_file.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QImage>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QSvgGenerator>
#include <QTableView>
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr double kLeastPixels = 2;  // for each of a view's own, where screens have fewer

constexpr const char* kNotWritten = QT_TRANSLATE_NOOP("Words", "the file cannot be written");

[[noreturn]] void refuse(const QString& path) {
  throw Error(ExitCode::io, Problems{{.file = path.toStdString(), .found = kNotWritten}});
}

QString filterOf(ViewFormat format) {
  switch (format) {
    case ViewFormat::png:
      return Words::tr("Picture (*.png)");
    case ViewFormat::svg:
      return Words::tr("Drawing (*.svg)");
    case ViewFormat::csv:
      return Words::tr("Table (*.csv)");
    case ViewFormat::json:
      break;
  }
  return Words::tr("Data for programs (*.json)");
}

bool writeText(const std::string& text, const QString& file) {
  if (text.empty()) return false;
  write_text_file(file.toStdString(), text);
  return true;
}

// A view as large as what its tables and areas have to scroll, without bars to move them by, while
// its picture is made: every row, and every cell whole. Pictures that have no such size are made no
// smaller than a slide has room for.
class Grown {
 public:
  explicit Grown(QWidget& view) : view_(view), size_(view.size()) {
    constexpr QSize kMostMore{1800, 4000}, kLeast{960, 540};  // pixels
    if (view.isWindow()) return;
    QList<QAbstractScrollArea*> areas = view.findChildren<QAbstractScrollArea*>();
    if (auto* own = qobject_cast<QAbstractScrollArea*>(&view)) areas << own;
    QSize more(0, 0);
    for (QAbstractScrollArea* area : areas) {
      bars_.push_back({area, area->verticalScrollBarPolicy(), area->horizontalScrollBarPolicy()});
      more = more.expandedTo(hidden_of(*area));
      area->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
      if (qobject_cast<QScrollArea*>(area) != nullptr) {
        area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
      }
    }
    const QSize whole = size_ + more.boundedTo(kMostMore);
    view.resize(areas.isEmpty() ? whole.expandedTo(kLeast) : whole);
  }
  Grown(const Grown&) = delete;
  Grown& operator=(const Grown&) = delete;
  ~Grown() {
    for (const auto& [table, column, width] : columns_) table->setColumnWidth(column, width);
    for (const auto& [area, vertical, horizontal] : bars_) {
      area->setVerticalScrollBarPolicy(vertical);
      area->setHorizontalScrollBarPolicy(horizontal);
    }
    view_.resize(size_);
  }

 private:
  struct Bars {
    QAbstractScrollArea* area;
    Qt::ScrollBarPolicy vertical, horizontal;
  };
  struct Column {
    QTableView* table;
    int column, width;
  };

  QSize hidden_of(QAbstractScrollArea& area) {
    if (auto* table = qobject_cast<QTableView*>(&area)) return hidden_of(*table);
    const QSize room = area.viewport()->size();
    if (auto* scroll = qobject_cast<QScrollArea*>(&area); scroll != nullptr && scroll->widget()) {
      return (scroll->widget()->size() - room).expandedTo({0, 0});
    }
    const QScrollBar& bar = *area.verticalScrollBar();
    const int hidden = bar.maximum() - bar.minimum();
    const bool lines = qobject_cast<QPlainTextEdit*>(&area) != nullptr;
    return {0, lines ? hidden * area.fontMetrics().lineSpacing() : hidden};
  }

  // Columns that are as wide as somebody made them get room for their widest cell.
  QSize hidden_of(QTableView& table) {
    QHeaderView& header = *table.horizontalHeader();
    int wider = 0;
    for (int column = 0; column < table.model()->columnCount(); ++column) {
      if (table.isColumnHidden(column)) continue;
      const int wants = static_cast<QAbstractItemView&>(table).sizeHintForColumn(column);
      const int width = table.columnWidth(column);
      if (wants <= width) continue;
      if (header.sectionResizeMode(column) == QHeaderView::Interactive) {
        columns_.push_back({&table, column, width});
        table.setColumnWidth(column, wants);
      } else {
        wider += wants - width;
      }
    }
    return {header.length() + wider - table.viewport()->width(),
            table.verticalHeader()->length() - table.viewport()->height()};
  }

  QWidget& view_;
  QSize size_;
  std::vector<Bars> bars_;
  std::vector<Column> columns_;
};

}  // namespace

QString nameOf(ViewFormat format) {
  static constexpr std::array kNames{"png", "svg", "csv", "json"};
  return kNames[static_cast<std::size_t>(format)];
}

std::vector<ViewFormat> formatsOf(const ViewKind& kind) {
  std::vector<ViewFormat> formats{ViewFormat::png, ViewFormat::svg};
  if (kind.csv != nullptr) formats.push_back(ViewFormat::csv);
  if (kind.json != nullptr) formats.push_back(ViewFormat::json);
  return formats;
}

// The list of kinds never changes.
const ViewKind* kindOf(const QWidget& widget) {
  static const std::map<QString, ViewKind> kinds = [] {
    std::map<QString, ViewKind> all;
    for (const Place place : kEveryPlace) {
      for (const ViewKind& kind : viewsOf(place)) all.emplace(kind.name, kind);
    }
    return all;
  }();
  const auto found = kinds.find(widget.objectName());
  return found == kinds.end() ? nullptr : &found->second;
}

// A part of a view may have the name of another thing.
QWidget* viewWith(QWidget* widget) {
  QWidget* view = nullptr;
  for (; widget != nullptr; widget = widget->parentWidget()) {
    if (kindOf(*widget) != nullptr) view = widget;
  }
  return view;
}

void writePng(QWidget& widget, const QString& file) {
  const Grown whole(widget);
  const double pixels = widget.isWindow() ? widget.devicePixelRatioF()
                                          : std::max(kLeastPixels, widget.devicePixelRatioF());
  QImage picture((QSizeF(widget.size()) * pixels).toSize(), QImage::Format_RGB32);
  picture.setDevicePixelRatio(pixels);
  picture.fill(widget.palette().color(QPalette::Window));
  widget.render(&picture);
  if (!picture.save(file, "PNG")) refuse(file);
}

void writeSvg(QWidget& widget, const QString& title, const QString& file) {
  const Grown whole(widget);
  QSvgGenerator generator;
  generator.setFileName(file);
  generator.setSize(widget.size());
  generator.setViewBox(widget.rect());
  generator.setTitle(title);
  QPainter painter;
  if (!painter.begin(&generator)) refuse(file);
  widget.render(&painter);
  painter.end();
}

bool writeView(QWidget& view, const ViewKind& kind, Session& session, ViewFormat format,
               const QString& file) {
  switch (format) {
    case ViewFormat::png:
      writePng(view, file);
      return true;
    case ViewFormat::svg:
      writeSvg(view, kind.name, file);
      return true;
    case ViewFormat::csv:
      return kind.csv != nullptr && writeText(kind.csv(session), file);
    case ViewFormat::json:
      break;
  }
  return kind.json != nullptr && writeText(kind.json(session), file);
}

std::optional<ViewFile> chooseViewFile(QWidget* parent, const ViewKind& kind, QString& problem) {
  const std::vector<ViewFormat> formats = formatsOf(kind);
  QStringList filters, names;
  for (const ViewFormat format : formats) {
    filters << filterOf(format);
    names << nameOf(format);
  }
  QFileDialog dialog(parent, Words::tr("Export this view"), {}, filters.join(";;"));
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setFileMode(QFileDialog::AnyFile);
  dialog.setDefaultSuffix(names.first());
  dialog.selectFile(kind.name + ("." + names.first()));
  QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, [&](const QString& filter) {
    const QString name = names.value(filters.indexOf(filter));
    const QFileInfo chosen(dialog.selectedFiles().value(0));
    dialog.setDefaultSuffix(name);
    if (!chosen.isDir()) dialog.selectFile(chosen.completeBaseName() + "." + name);
  });
  if (dialog.exec() != QDialog::Accepted) return std::nullopt;
  const QString file = dialog.selectedFiles().value(0);
  const QString end = QFileInfo(file).suffix().toLower();
  const auto at = names.indexOf(end);
  if (at < 0) {
    problem = Words::tr("%1: this view is written as a file that ends in %2, not in \"%3\"")
                  .arg(file, names.join(", "), end);
    return std::nullopt;
  }
  return ViewFile{file, formats[static_cast<std::size_t>(at)]};
}

}  // namespace tessera::gui
