// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/export/view_file.h"

#include <QBuffer>
#include <QFileDialog>
#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QSvgGenerator>
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"
#include "gui/export/whole_view.h"

namespace tessera::gui {
namespace {

constexpr double kLeastPixels = 2;  // for each of a view's own, where screens have fewer

constexpr const char* kNotDrawn = QT_TRANSLATE_NOOP("Words", "the picture cannot be drawn");

[[noreturn]] void refuse(const QString& path) {
  throw Error(ExitCode::io, Problems{{.file = path.toStdString(), .found = kNotDrawn}});
}

// The file has all of the picture, or stays as it was.
void writePicture(const QByteArray& picture, const QString& file) {
  write_text_file(file.toStdString(),
                  {picture.constData(), static_cast<std::size_t>(picture.size())});
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

}  // namespace

QString nameOf(ViewFormat format) {
  static constexpr std::array kNames{"png", "svg", "csv", "json"};
  return kNames[static_cast<std::size_t>(format)];
}

std::vector<ViewFormat> formatsOf(const ViewKind& kind) {
  std::vector<ViewFormat> formats{ViewFormat::png, ViewFormat::svg};
  if (kind.csv != nullptr || isLong(kind, ViewFormat::csv)) formats.push_back(ViewFormat::csv);
  if (kind.json != nullptr || isLong(kind, ViewFormat::json)) formats.push_back(ViewFormat::json);
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
  const WholeView whole(widget);
  const double pixels = widget.isWindow() ? widget.devicePixelRatioF()
                                          : std::max(kLeastPixels, widget.devicePixelRatioF());
  QImage picture((QSizeF(widget.size()) * pixels).toSize(), QImage::Format_RGB32);
  picture.setDevicePixelRatio(pixels);
  picture.fill(widget.palette().color(QPalette::Window));
  widget.render(&picture);
  QBuffer all;
  all.open(QIODevice::WriteOnly);
  if (!picture.save(&all, "PNG")) refuse(file);
  writePicture(all.data(), file);
}

void writeSvg(QWidget& widget, const QString& title, const QString& file) {
  const WholeView whole(widget);
  QSvgGenerator generator;
  QBuffer all;
  generator.setOutputDevice(&all);
  generator.setSize(widget.size());
  generator.setViewBox(widget.rect());
  generator.setTitle(title);
  QPainter painter;
  if (!painter.begin(&generator)) refuse(file);
  widget.render(&painter);
  painter.end();
  writePicture(all.data(), file);
}

bool isLong(const ViewKind& kind, ViewFormat format) {
  return (format == ViewFormat::csv && kind.long_csv != nullptr) ||
         (format == ViewFormat::json && kind.long_json != nullptr);
}

LongText longTextOf(const ViewKind& kind, Session& session, ViewFormat format) {
  if (!isLong(kind, format)) return {};
  return format == ViewFormat::csv ? kind.long_csv(session) : kind.long_json(session);
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
