// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a page that is HTML and well-formed XML at once; whatever is text in it is escaped.
//
// There is no way to write raw markup: a name with tags in it stays a name. What XML cannot hold
// (control characters) becomes U+FFFD. Tags and names of attributes are the program's own. A plain
// value; one thread at a time.
#pragma once

#include <QAbstractItemModel>
#include <QColor>
#include <QString>
#include <QXmlStreamWriter>
#include <initializer_list>
#include <utility>

namespace tessera::gui {

class Markup {
 public:
  using Attributes = std::initializer_list<std::pair<const char*, QString>>;

  /// Begins with the document's type.
  Markup();

  void open(const char* tag, const Attributes& attributes = {});
  /// One more of what was just opened.
  void attribute(const char* name, const QString& value);
  void close();
  void text(const QString& text);
  /// <tag>text</tag>, also where the text is empty.
  void element(const char* tag, const QString& text, const Attributes& attributes = {});
  /// <tag/>: for tags that never hold anything, and for shapes.
  void empty(const char* tag, const Attributes& attributes);
  /// The whole page. Precondition: all that was opened is closed.
  const QString& page() const { return page_; }

 private:
  QString page_;
  QXmlStreamWriter to_;
};

/// A square of that colour.
void add_swatch(Markup& to, const QColor& colour);

/// A model's cells under the names of its columns, and behind those of its rows where they have
/// some; of many rows the first `most`, and how many more there are. `bad_role`: what has it true
/// is marked as wrong; -1 = nothing is.
void add_table(Markup& to, const QAbstractItemModel& model, int bad_role = -1, int most = 200);

}  // namespace tessera::gui
