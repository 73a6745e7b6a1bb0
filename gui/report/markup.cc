// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/report/markup.h"

#include <algorithm>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

QString held_by_xml(QString text) {
  for (qsizetype i = 0; i < text.size(); ++i) {
    const QChar c = text[i];
    const bool pair = c.isHighSurrogate() && i + 1 < text.size() && text[i + 1].isLowSurrogate();
    if (pair) {
      ++i;
      continue;
    }
    const bool control = c < u' ' && c != u'\t' && c != u'\n' && c != u'\r';
    if (control || c.isSurrogate() || c >= QChar(0xfffe)) text[i] = QChar::ReplacementCharacter;
  }
  return text;
}

// Rows that are numbered only have no names.
bool rows_are_named(const QAbstractItemModel& model) {
  return model.headerData(0, Qt::Vertical).typeId() == QMetaType::QString;
}

void add_cell(Markup& to, const QModelIndex& at, int bad_role) {
  const bool right = (at.data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight) != 0;
  const bool bad = bad_role >= 0 && at.data(bad_role).toBool();
  to.open("td", {{"class", QString(right ? "number" : "word") + (bad ? " bad" : "")}});
  const QVariant colour = at.data(Qt::DecorationRole);
  if (colour.typeId() == QMetaType::QColor) add_swatch(to, colour.value<QColor>());
  to.text(at.data().toString());
  to.close();
}

}  // namespace

Markup::Markup() : to_(&page_) { to_.writeDTD("<!DOCTYPE html>"); }

void Markup::open(const char* tag, const Attributes& attributes) {
  to_.writeStartElement(tag);
  for (const auto& [name, value] : attributes) attribute(name, value);
}

void Markup::attribute(const char* name, const QString& value) {
  to_.writeAttribute(name, held_by_xml(value));
}

void Markup::close() { to_.writeEndElement(); }

void Markup::text(const QString& text) { to_.writeCharacters(held_by_xml(text)); }

void Markup::element(const char* tag, const QString& text, const Attributes& attributes) {
  open(tag, attributes);
  this->text(text);
  close();
}

void Markup::empty(const char* tag, const Attributes& attributes) {
  to_.writeEmptyElement(tag);
  for (const auto& [name, value] : attributes) to_.writeAttribute(name, held_by_xml(value));
}

void add_swatch(Markup& to, const QColor& colour) {
  to.element("i", "", {{"class", "swatch"}, {"style", "background:" + colour.name()}});
}

void add_table(Markup& to, const QAbstractItemModel& model, int bad_role, int most) {
  const int rows = std::min(model.rowCount(), most), columns = model.columnCount();
  if (rows == 0) return;
  const bool named = rows_are_named(model);
  to.open("div", {{"class", "wide"}});
  to.open("table");
  to.open("thead");
  to.open("tr");
  if (named) to.element("th", "");
  for (int column = 0; column < columns; ++column) {
    to.element("th", model.headerData(column, Qt::Horizontal).toString());
  }
  to.close();
  to.close();
  to.open("tbody");
  for (int row = 0; row < rows; ++row) {
    to.open("tr");
    if (named) to.element("th", model.headerData(row, Qt::Vertical).toString());
    for (int column = 0; column < columns; ++column) {
      add_cell(to, model.index(row, column), bad_role);
    }
    to.close();
  }
  to.close();
  to.close();
  if (model.rowCount() > rows) {
    to.element("p", Words::tr("and %1 rows more").arg(model.rowCount() - rows));
  }
  to.close();
}

}  // namespace tessera::gui
