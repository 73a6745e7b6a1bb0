// SPDX-License-Identifier: GPL-3.0-or-later
// Files of views: pictures have all that is shown and nothing that one works it by; long tables are
// written beside the window's work.
#include "gui/export/view_file.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSemaphore>
#include <QSpinBox>
#include <QSplitter>
#include <QStandardItemModel>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QVBoxLayout>
#include <atomic>
#include <fstream>
#include <map>

#include "cost_models/documents/problem.h"
#include "gui/export/file_writing.h"
#include "gui/views/elided_label.h"
#include "gui/views/view.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

/// As its picture is: pixels of that colour.
int pixelsOf(const QString& file, QRgb colour) {
  const QImage picture(file);
  int found = 0;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) found += picture.pixel(x, y) == colour ? 1 : 0;
  }
  return found;
}

// Buttons, boxes, fields and bars are no part of what is shown; what a box says is.
TEST(ViewFile, APictureHasNoControlsButWhatTheySay) {
  constexpr QRgb kControl = 0xff00ff00, kLetters = 0xffff0000;
  QWidget top;
  QWidget view(&top);
  auto* line = new QHBoxLayout;
  auto* box = new QComboBox;
  box->addItem("MMMM");
  auto* button = new QPushButton("Show");
  auto* field = new QLineEdit;
  auto* rank = new QSpinBox;
  auto* hint = new QLabel("W S: zoom");
  keepForTheScreen(*hint);
  const QList<QWidget*> controls{box, button, field, rank, hint};
  for (QWidget* each : controls) line->addWidget(each);
  auto* title =
      new QLabel("<b>" + QString("<!-- nothing of this is seen -->").repeated(20) + "T</b>");
  line->addWidget(title);
  // Each control has a piece of that colour on it.
  for (QWidget* each : controls) {
    auto* piece = new QWidget(each);
    piece->setAutoFillBackground(true);
    piece->setPalette(QPalette(QColor(kControl)));
    piece->setGeometry(2, 2, 4, 4);
  }
  QPalette red = view.palette();
  red.setColor(QPalette::WindowText, QColor(kLetters));
  view.setPalette(red);
  auto* layout = new QVBoxLayout(&view);
  layout->addLayout(line);
  layout->addStretch(1);
  view.resize(400, 200);
  top.resize(400, 200);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  QCoreApplication::processEvents();
  std::map<QWidget*, QRect> places;
  for (QWidget* each : controls) places[each] = each->geometry();
  const QTemporaryDir folder;
  writePng(view, folder.filePath("view.png"));
  EXPECT_EQ(QImage(folder.filePath("view.png")).width(), 2 * 960) << "markup takes no room";
  EXPECT_EQ(pixelsOf(folder.filePath("view.png"), kControl), 0);
  EXPECT_GT(pixelsOf(folder.filePath("view.png"), kLetters), 20) << "what the box says";
  QCoreApplication::processEvents();
  for (QWidget* each : controls) {
    EXPECT_TRUE(each->isVisible());
    EXPECT_EQ(each->geometry(), places[each]);
  }
  EXPECT_EQ(view.findChildren<QLabel*>(), (QList<QLabel*>{hint, title}));
}

// Lines that gave way on the screen, and texts that wrapped there.
TEST(ViewFile, APictureHasLinesAndTextsWhole) {
  QWidget top;
  QWidget view(&top);
  auto* layout = new QVBoxLayout(&view);
  auto* line = new ElidedLabel(QString("twelve letters ").repeated(20));
  auto* text = new QPlainTextEdit;
  text->setPlainText(QString("row\n").repeated(80) + QString("wide ").repeated(100));
  layout->addWidget(line);
  layout->addWidget(text);
  view.resize(300, 200);
  top.resize(300, 200);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  const QFontMetrics letters = text->fontMetrics();
  QTemporaryDir folder;
  writePng(view, folder.filePath("view.png"));
  const QImage picture(folder.filePath("view.png"));
  EXPECT_GT(picture.width(), 2 * line->fontMetrics().horizontalAdvance(line->text()));
  EXPECT_GT(picture.width(), 2 * letters.horizontalAdvance(QString("wide ").repeated(100)));
  EXPECT_GT(picture.height(), 2 * 81 * letters.lineSpacing());
  EXPECT_EQ(view.size(), QSize(300, 200));
  EXPECT_EQ(text->lineWrapMode(), QPlainTextEdit::WidgetWidth);
  QCoreApplication::processEvents();
  EXPECT_EQ(top.size(), QSize(300, 200)) << "nothing of it reaches the window";
  EXPECT_LT(top.minimumSizeHint().width(), 300);
}

// A table in a part of a splitter beside another one: all rows and columns of both.
TEST(ViewFile, APictureHasAllOfTheTablesOfASplitter) {
  QWidget top;
  auto* view = new QWidget;
  QStandardItemModel many(50, 30), few(3, 2);
  auto* split = new QSplitter(Qt::Vertical);
  auto* first = new QTableView;
  auto* second = new QTableView;
  first->setModel(&many);
  second->setModel(&few);
  auto* drawn = new QWidget;  // a picture
  second->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  few.setItem(0, 1, new QStandardItem(QString("wide ").repeated(60)));
  split->addWidget(drawn);
  split->addWidget(first);
  split->addWidget(second);
  (new QVBoxLayout(view))->addWidget(split);
  (new QVBoxLayout(&top))->addWidget(view);
  top.resize(400, 300);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  split->setSizes({120, 80, 60});
  QCoreApplication::processEvents();
  const QList<int> sizes = split->sizes();
  const int widest = static_cast<QAbstractItemView*>(second)->sizeHintForColumn(1);
  QTemporaryDir folder;
  const QString file = folder.filePath("view.png");
  writePng(*view, file);
  const QImage picture(file);
  EXPECT_GE(picture.width(), 2 * first->horizontalHeader()->length());
  EXPECT_GE(picture.width(), 2 * widest);
  EXPECT_GE(picture.height(), 2 * (sizes[0] + first->verticalHeader()->length() +
                                   second->verticalHeader()->length()));
  QCoreApplication::processEvents();
  EXPECT_EQ(split->sizes(), sizes);
  EXPECT_EQ(second->horizontalHeader()->sectionResizeMode(1), QHeaderView::Stretch);
  EXPECT_EQ(top.size(), QSize(400, 300));
}

/// A text of two parts, the second of which waits until it may come.
struct SlowText {
  QSemaphore may_end;
  std::atomic<int> given = 0;
  LongText text = [this](const TakePart& take) {
    take("one\n", 0.5);
    ++given;
    may_end.acquire();
    take("two\n", 1);
  };
  ~SlowText() { may_end.release(8); }
};

QByteArray contentOf(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
}

// What has no room is said, and why, whatever the format.
TEST(ViewFile, APictureThatHasNoRoomIsRefused) {
  if (!QFile::exists("/dev/full")) GTEST_SKIP() << "no device that is always full";
  QLabel view("text");
  view.resize(80, 20);
  const auto refusal = [](const auto& write) -> std::string {
    try {
      write();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::io);
      return error.what();
    }
    return "written";
  };
  for (const std::string& said : {refusal([&] { writeSvg(view, "view", "/dev/full"); }),
                                  refusal([&] { writePng(view, "/dev/full"); })}) {
    EXPECT_NE(said.find("/dev/full"), std::string::npos) << said;
    EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
  }
}

TEST(FileWriting, IsBesideItsFileUntilItIsWhole) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("table.csv");
  SlowText slow;
  FileWriting writing;
  QStringList written, refused;
  QObject::connect(&writing, &FileWriting::written, [&](const QString& one) { written << one; });
  QObject::connect(&writing, &FileWriting::refused, [&](const QString& why) { refused << why; });
  std::ofstream(file.toStdString()) << "before";
  writing.start(slow.text, file);
  writing.start([](const TakePart& take) { take("second", 1); }, folder.filePath("second.csv"));
  writing.start([](const TakePart& take) { take("third", 1); }, "/proc/third.csv");
  ASSERT_TRUE(wait_for([&] { return slow.given == 1; }));
  EXPECT_TRUE(writing.isBusy());
  EXPECT_EQ(writing.progress(), "Writing table.csv: 50 %");
  EXPECT_EQ(contentOf(file), "before");
  slow.may_end.release();
  ASSERT_TRUE(wait_for([&] { return !writing.isBusy(); }));
  EXPECT_EQ(contentOf(file), "one\ntwo\n");
  EXPECT_EQ(contentOf(folder.filePath("second.csv")), "second");
  EXPECT_EQ(written.size(), 2);
  ASSERT_EQ(refused.size(), 1);
  EXPECT_TRUE(refused[0].contains("third.csv"));
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files).size(), 2);
}

TEST(FileWriting, LeavesNothingWhereItIsCancelled) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("table.csv");
  std::ofstream(file.toStdString()) << "before";
  SlowText slow;
  {
    FileWriting writing;
    writing.start(slow.text, file);
    ASSERT_TRUE(wait_for([&] { return slow.given == 1; }));
    writing.cancel();
    EXPECT_FALSE(writing.isBusy());
    EXPECT_EQ(writing.progress(), "");
    slow.may_end.release();
  }  // its thread has ended
  EXPECT_EQ(contentOf(file), "before");
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files), QStringList{"table.csv"});
}

// What a table scrolls to is in its picture.
TEST(ViewFile, APictureHasAllRowsOfATable) {
  QTemporaryDir folder;
  QStandardItemModel model(60, 2);
  QWidget window;
  auto* panel = new QWidget;
  auto* table = new QTableView;
  table->setModel(&model);
  (new QVBoxLayout(panel))->addWidget(table);
  (new QVBoxLayout(&window))->addWidget(panel);
  window.resize(300, 200);
  window.show();
  const QSize before = panel->size();
  const int rows = table->verticalHeader()->length();
  ASSERT_GT(rows, before.height());
  writePng(*panel, folder.filePath("table.png"));
  EXPECT_GT(QImage(folder.filePath("table.png")).height(), 2 * rows);
  EXPECT_EQ(panel->size(), before);
}

// Of what scrolls the last part has a colour of its own, which is in the picture at two pixels
// each.
TEST(ViewFile, APictureHasWhatAnAreaHidesAndTwoPixelsForEachOfTheView) {
  constexpr QRgb kLast = 0xff13579b;
  QWidget top;  // a view is part of a window
  QWidget view(&top);
  auto* layout = new QVBoxLayout(&view);
  auto* area = new QScrollArea;
  auto* inner = new QWidget;
  inner->setFixedSize(500, 900);
  auto* last = new QWidget(inner);
  last->setGeometry(0, 890, 10, 10);
  last->setAutoFillBackground(true);
  last->setPalette(QPalette(QColor(kLast)));
  area->setWidget(inner);
  layout->addWidget(area);
  view.resize(300, 200);
  top.resize(300, 200);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  const QTemporaryDir folder;
  const QString file = folder.filePath("view.png");
  writePng(view, file);
  EXPECT_EQ(view.size(), QSize(300, 200));
  EXPECT_EQ(area->verticalScrollBarPolicy(), Qt::ScrollBarAsNeeded);
  const QImage picture(file);
  EXPECT_GE(picture.width(), 2 * 500);
  EXPECT_GE(picture.height(), 2 * 900);
  int marked = 0;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) marked += picture.pixel(x, y) == kLast ? 1 : 0;
  }
  EXPECT_EQ(marked, 20 * 20);
}

TEST(ViewFile, APictureThatScrollsNothingIsNoSmallerThanASlideTakes) {
  QWidget top;
  QWidget view(&top);
  view.resize(461, 262);
  const QTemporaryDir folder;
  writePng(view, folder.filePath("view.png"));
  EXPECT_EQ(QImage(folder.filePath("view.png")).size(), QSize(1920, 1080));
  EXPECT_EQ(view.size(), QSize(461, 262));
}

}  // namespace
}  // namespace tessera::gui
