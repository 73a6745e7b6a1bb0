// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/font_of_language.h"

#include <QFontDatabase>
#include <QGlyphRun>
#include <QLocale>
#include <QRawFont>
#include <QTextLayout>

namespace tessera::gui {
namespace {

const QString kCharacters = QString::fromUtf8("\u7b80\u4f53");  // "simplified"

// The family that fills in what the font does not have; empty where none does.
QString filling_in(const QFont& font) {
  QTextLayout layout(kCharacters, font);
  layout.beginLayout();
  layout.createLine();
  layout.endLayout();
  const auto runs = layout.glyphRuns();
  if (runs.isEmpty() || runs.front().glyphIndexes().value(0) == 0) return {};
  return runs.front().rawFont().familyName();
}

// One of Japan, Korea, Taiwan or Hong Kong writes many characters otherwise, and has a sister.
QString of_mainland(const QString& family) {
  const QString sister = family.left(family.lastIndexOf(' ')) + " SC";
  return QFontDatabase::families(QFontDatabase::SimplifiedChinese).contains(sister) ? sister
                                                                                    : family;
}

}  // namespace

QFont font_of(const QString& language, const QFont& usual) {
  if (QLocale(language).script() != QLocale::SimplifiedHanScript) return usual;
  const QString family = filling_in(usual);
  if (family.isEmpty()) return usual;
  QFont font = usual;
  font.setFamilies(QStringList{of_mainland(family)} + usual.families());
  return font;
}

}  // namespace tessera::gui
