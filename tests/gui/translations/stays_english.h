// SPDX-License-Identifier: GPL-3.0-or-later
// Which words of a text that the window says in Chinese are English prose.
//
// Names of keys, roles, phases and programs, paths, numbers and what stands in quotes are no prose;
// words that only a sentence has are.
#pragma once

#include <QRegularExpression>
#include <QString>
#include <QStringList>

namespace tessera::gui {

/// The first such word; empty: there is none.
inline QString english_word(QString text) {
  static const QRegularExpression quoted("\"[^\"]*\"|'[^']*'|`[^`]*`|<[^>]*>");
  static const QRegularExpression name("[A-Za-z0-9_]*[._/=\\[\\]-][A-Za-z0-9_./=\\[\\]*-]*");
  static const QRegularExpression word(
      "(?<![A-Za-z_-])(a|an|the|of|to|in|is|are|and|or|with|by|that|which|no|not|at|for|from|each|"
      "every|as|has|have|than|only|needs|where|there|between|it|its|more|less|most|least|into|"
      "beside|cannot|does|another|again|one|two|found|expected|file|files|map|number|integer|"
      "string|text|key|keys|layers|layout|fixed|plans|many|too|leave|use|fits|"
      "instead|per|nothing)(?![A-Za-z_-])");
  return word.match(text.remove(quoted).remove(name)).captured();
}

}  // namespace tessera::gui
