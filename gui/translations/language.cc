// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/language.h"

#include <QCoreApplication>
#include <QDir>
#include <QLibraryInfo>
#include <QTranslator>
#include <memory>
#include <vector>

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
  static std::vector<std::unique_ptr<QTranslator>> translators;
  translators.clear();  // uninstalls them
  if (language == kEnglish) return;
  const auto take = [&](const QString& name, const QString& folder) {
    auto translator = std::make_unique<QTranslator>();
    if (!translator->load(name, folder)) return;
    QCoreApplication::installTranslator(translator.get());
    translators.push_back(std::move(translator));
  };
  take("qtbase_" + language, QLibraryInfo::path(QLibraryInfo::TranslationsPath));
  take(kPrefix + language, ":/translations");
}

}  // namespace tessera::gui
