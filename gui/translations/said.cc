// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/said.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <vector>

#include "gui/translations/sentences.h"

namespace tessera::gui {
namespace {

QString translated(const char* text) { return QCoreApplication::translate("Words", text); }

bool isPlace(const QString& text, qsizetype at) {
  return text[at] == '%' && at + 1 < text.size() && text[at + 1].isDigit();
}

/// A sentence cut at its places. A value has one character at least and ends where what follows it
/// first stands, so that a text is read once, however long it is.
struct Pattern {
  const char* sentence = nullptr;
  std::vector<QString> between;  // before the first place, between places, behind the last

  /// The values by their places from 1 on; empty: the text is no such sentence.
  std::vector<QString> values(const QString& text) const {
    if (!text.startsWith(between.front()) || !text.endsWith(between.back())) return {};
    const qsizetype end = text.size() - between.back().size();
    qsizetype at = between.front().size();
    std::vector<QString> values;
    for (std::size_t i = 1; i + 1 < between.size(); ++i) {
      const qsizetype next = text.indexOf(between[i], at + 1);
      if (next < 0 || next + between[i].size() > end) return {};
      values.push_back(text.mid(at, next - at));
      at = next + between[i].size();
    }
    if (end <= at) return {};
    values.push_back(text.mid(at, end - at));
    return values;
  }
};

Pattern patternOf(const char* sentence) {
  Pattern pattern{sentence, {QString()}};
  const QString text(sentence);
  for (qsizetype at = 0; at < text.size(); ++at) {
    if (isPlace(text, at)) {
      pattern.between.emplace_back();
      ++at;
    } else {
      pattern.between.back() += text[at];
    }
  }
  return pattern;
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = [] {
    std::vector<Pattern> made;
    for (const auto& list :
         {planSentences(), runSentences(), reportSentences(), jobSentences(), fileSentences()}) {
      for (const char* sentence : list) {
        if (Pattern pattern = patternOf(sentence); pattern.between.size() > 1) {
          made.push_back(std::move(pattern));
        }
      }
    }
    return made;
  }();
  return all;
}

bool isEnglish() {
  const char* const any = patterns().front().sentence;
  return translated(any) == any;
}

/// Names that are chosen among: "llama, qwen2 or qwen3". Empty: the text is none.
QString listed(const QString& text) {
  static const QRegularExpression names("^([^ ,]+, )*[^ ,]+(,? or [^ ,]+)+$");
  if (!names.match(text).hasMatch()) return {};
  //: between the last two names that one chooses among
  const QString last = translated(QT_TRANSLATE_NOOP("Words", " or "));
  return QString(text).replace(", or ", last).replace(" or ", last);
}

/// At once: a value may look like a place of another. Values are said, too, but for what stands in
/// quotes.
QString filled(const QString& sentence, const std::vector<QString>& values) {
  QString text;
  for (qsizetype at = 0; at < sentence.size(); ++at) {
    if (isPlace(sentence, at)) {
      const bool quoted = at > 0 && sentence[at - 1] == '\'';
      const QString& value = values.at(static_cast<std::size_t>(sentence[++at].digitValue() - 1));
      text += quoted ? value : said(value.toStdString());
    } else {
      text += sentence[at];
    }
  }
  return text;
}

/// With what stands for a value that is not there: "actor.tp (free) -> 4".
QString withMarks(QString text) {
  static constexpr const char* kMarks[] = {QT_TRANSLATE_NOOP("Words", "(not set)"),
                                           QT_TRANSLATE_NOOP("Words", "(free)")};
  for (const char* mark : kMarks) text.replace(QLatin1String(mark), translated(mark));
  return text;
}

bool isQuoted(const QString& text) {
  return text.size() > 1 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0] &&
         text.indexOf(text[0], 1) == text.size() - 1;
}

/// The columns that a font of equal widths takes for it: Chinese letters are twice as wide.
qsizetype widthOf(const QString& text) {
  return text.size() + std::count_if(text.begin(), text.end(), [](QChar c) {
           return c.script() == QChar::Script_Han || (c >= QChar(0xff00) && c <= QChar(0xff60)) ||
                  (c >= QChar(0x3000) && c <= QChar(0x303f));
         });
}

QString lineSaid(const QString& line) {
  static const QRegularExpression cell("[^ ]+( [^ ]+)*");
  QString text;
  qsizetype width = 0;
  for (auto cells = cell.globalMatch(line); cells.hasNext();) {
    const auto match = cells.next();
    const qsizetype least = width == 0 ? 0 : width + 2;
    text += QString(std::max(match.capturedStart(), least) - width, ' ');
    width = std::max(match.capturedStart(), least);
    const QString words = said(match.captured().toStdString());
    text += words;
    width += widthOf(words);
  }
  return text;
}

}  // namespace

QString said(std::string_view english) {
  const QString text = QString::fromUtf8(english.data(), static_cast<qsizetype>(english.size()));
  if (text.isEmpty() || isQuoted(text)) return text;
  const QString whole = translated(text.toUtf8().constData());
  if (whole != text) return whole;
  if (isEnglish()) return text;
  for (const Pattern& pattern : patterns()) {
    if (const std::vector<QString> values = pattern.values(text); !values.empty()) {
      return filled(translated(pattern.sentence), values);
    }
  }
  const QString names = listed(text);
  return names.isEmpty() ? withMarks(text) : names;
}

QString saidLines(std::string_view english) {
  const QString text = QString::fromUtf8(english.data(), static_cast<qsizetype>(english.size()));
  if (isEnglish()) return text;
  QStringList lines;
  for (const QString& line : text.split('\n')) lines << lineSaid(line);
  return lines.join('\n');
}

}  // namespace tessera::gui
