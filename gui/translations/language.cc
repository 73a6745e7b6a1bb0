// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/language.h"

#include <QCoreApplication>
#include <QDir>
#include <QLibraryInfo>
#include <QMutex>
#include <QTranslator>
#include <map>
#include <memory>
#include <type_traits>

#ifdef TESSERA_TRANSLATIONS
// Of a static library only what is named is linked. Outside of namespaces, as Qt demands.
static void takeTranslations() { Q_INIT_RESOURCE(translations); }
#else
static void takeTranslations() {}
#endif

namespace tessera::gui {
namespace {

const QString kEnglish = "en";
const QString kPrefix = "tessera_", kSuffix = ".qm";

/// Remembers what it was asked for; texts are asked for in any thread.
class Remembering : public QTranslator {
 public:
  QString translate(const char* context, const char* text, const char* which,
                    int number) const override {
    QString shown = QTranslator::translate(context, text, which, number);
    if (shown.isEmpty()) return shown;
    const QMutexLocker alone(&mutex_);
    english_.try_emplace(shown, QString::fromUtf8(text));
    return shown;
  }
  QString englishOf(const QString& shown) const {
    const QMutexLocker alone(&mutex_);
    const auto found = english_.find(shown);
    return found == english_.end() ? shown : found->second;
  }

 private:
  mutable QMutex mutex_;
  mutable std::map<QString, QString> english_;  // at most the texts of the language's file
};

struct Spoken {
  std::unique_ptr<QTranslator> of_qt;
  std::unique_ptr<Remembering> own;
};
Spoken& spoken() {
  static Spoken spoken;
  return spoken;
}

}  // namespace

QStringList languages() {
  takeTranslations();
  QStringList all{kEnglish};
  for (const QString& file : QDir(":/translations").entryList({kPrefix + "*" + kSuffix})) {
    all << file.mid(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
  }
  return all;
}

QString nameOfLanguage(const QString& language) {
  return language == kEnglish ? QString("English") : QLocale(language).nativeLanguageName();
}

// "zh-Hans-CN" is read by whom zh_CN is for; who writes Chinese otherwise is not taken for one.
QString languageOf(const QLocale& locale) {
  const QStringList all = languages();
  for (const QString& wanted : locale.uiLanguages()) {
    const QLocale reader(wanted);
    for (const QString& language : all) {
      const QLocale written(language);
      if (written.language() == reader.language() && written.script() == reader.script()) {
        return language;
      }
    }
  }
  return kEnglish;
}

// Also what Qt says itself, as the buttons of its dialogs.
void speak(const QString& language) {
  spoken() = {};  // uninstalls them
  if (language == kEnglish) return;
  const auto take = [](auto& translator, const QString& name, const QString& folder) {
    translator = std::make_unique<std::decay_t<decltype(*translator)>>();
    if (translator->load(name, folder)) QCoreApplication::installTranslator(translator.get());
  };
  take(spoken().of_qt, "qtbase_" + language, QLibraryInfo::path(QLibraryInfo::TranslationsPath));
  take(spoken().own, kPrefix + language, ":/translations");
}

QString englishOf(const QString& shown) {
  return spoken().own ? spoken().own->englishOf(shown) : shown;
}

}  // namespace tessera::gui
