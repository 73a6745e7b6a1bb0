// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/export/view_file.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QPainter>
#include <QPixmap>
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

// What of a table's cells has no room in its columns, and of its rows below one another.
QSize hidden_of(QTableView& table) {
  int width = table.horizontalHeader()->length() - table.viewport()->width();
  for (int column = 0; column < table.model()->columnCount(); ++column) {
    const int wants = static_cast<QAbstractItemView&>(table).sizeHintForColumn(column);
    width += std::max(0, wants - table.columnWidth(column));
  }
  return {width, table.verticalHeader()->length() - table.viewport()->height()};
}

// A view as large as its tables are, without bars to move them by, while its picture is made.
class Grown {
 public:
  explicit Grown(QWidget& view) : view_(view), size_(view.size()) {
    constexpr QSize kMostMore{1800, 4000};  // pixels
    if (view.isWindow()) return;
    QSize more(0, 0);
    for (QTableView* table : tables()) {
      bars_.emplace_back(table, table->verticalScrollBarPolicy());
      table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
      more = more.expandedTo(hidden_of(*table));
    }
    view.resize(size_ + more.boundedTo(kMostMore));
  }
  Grown(const Grown&) = delete;
  Grown& operator=(const Grown&) = delete;
  ~Grown() {
    for (const auto& [table, policy] : bars_) table->setVerticalScrollBarPolicy(policy);
    view_.resize(size_);
  }

 private:
  // The view may be one itself.
  QList<QTableView*> tables() const {
    QList<QTableView*> tables = view_.findChildren<QTableView*>();
    if (auto* own = qobject_cast<QTableView*>(&view_)) tables << own;
    return tables;
  }

  QWidget& view_;
  QSize size_;
  std::vector<std::pair<QTableView*, Qt::ScrollBarPolicy>> bars_;
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
  if (!widget.grab().save(file, "PNG")) refuse(file);
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
