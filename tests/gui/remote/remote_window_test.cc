// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of another host in the window, by keys and mouse: against tessera serve, while it is there
// and while it is not.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QListWidget>
#include <QMenuBar>
#include <QProcess>
#include <QPushButton>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "gui/document/text.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/run_page.h"
#include "gui/remote/remote_runs.h"
#include "gui/run_views/remote_dialog.h"
#include "simulator/timeline/rank_status.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

const fs::path kSample = fs::path(TESSERA_SOURCE_DIR) / "tests/gui/data/run";

/// `tessera serve`, as a user starts it.
class Served {
 public:
  Served(const QStringList& folders, const fs::path& token_file, int port = 0) {
    QStringList words{"serve"};
    words << folders << "--port" << QString::number(port) << "--token-file"
          << QString::fromStdString(token_file.string());
    process_.start(TESSERA_BINARY_DIR "/cli/tessera", words);
    while (!said_.contains("look ") && process_.waitForReadyRead(kPatienceMs)) {
      said_ += QString::fromUtf8(process_.readAllStandardOutput());
    }
  }
  ~Served() {
    process_.terminate();
    process_.waitForFinished(kPatienceMs);
  }
  QString after(const QString& word) const {
    for (const QString& line : said_.split('\n')) {
      if (line.startsWith(word)) return line.mid(word.size()).trimmed();
    }
    return {};
  }
  int port() const { return after("at ").section(':', 1).toInt(); }
  QString address() const { return QString("127.0.0.1:%1").arg(port()); }
  QString token() const { return after("token "); }

 private:
  QProcess process_;
  QString said_;
};

class Remote : public Explore {
 protected:
  void SetUp() override {
    qputenv("XDG_CACHE_HOME", folder.filePath("cache").toUtf8());
    qunsetenv("TESSERA_REMOTE_TOKEN");
    Explore::SetUp();
    fs::create_directories(run());
    fs::copy(kSample / "plan.json", run() / "plan.json");
    steps(1, 5);
    rank = std::make_unique<RankStatusFile>(run(), 0, RankLife{.marks_end = false});
    rank->enter("gen", 5);
  }
  fs::path at(const char* name) const { return folder.filePath(name).toStdString(); }
  fs::path run() const { return at("RUN"); }
  QString served_folder() const { return QString::fromStdString(run().string()); }
  void steps(int first, int last) {
    std::ofstream out(run() / "metrics.jsonl", std::ios::app);
    for (int step = first; step <= last; ++step) {
      out << "{\"step\": " << step << ", \"data\": {\"timing_s/step\": 1.5}}\n";
    }
  }
  std::unique_ptr<Served> serve(int port = 0) {
    return std::make_unique<Served>(QStringList{served_folder()}, at("token"), port);
  }
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers) {
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, key, modifiers);
  }
  /// By keys: address, Tab, token; Enter once the runs are listed.
  void openBy(const QString& address, const QString& token) {
    with_dialog(&window, [address, token](QDialog& dialog) {
      auto* line = named<QLineEdit>(dialog, "Address");
      line->selectAll();
      QTest::keyClicks(line, address);
      QTest::keyClick(line, Qt::Key_Tab);
      auto* next = qobject_cast<QLineEdit*>(dialog.focusWidget());
      ASSERT_NE(next, nullptr);
      EXPECT_EQ(next->accessibleName(), "Token");
      EXPECT_EQ(next->echoMode(), QLineEdit::Password);
      QTest::keyClicks(next, token);
      auto* runs = named<QListWidget>(dialog, "Runs that are served there");
      EXPECT_TRUE(wait_for([&] { return runs->count() > 0; }));
      QTest::keyClick(next, Qt::Key_Return);
      if (dialog.isVisible()) dialog.reject();
    });
    press(Qt::Key_R, Qt::ControlModifier | Qt::AltModifier);
  }
  int last_step() {
    const auto& steps = window.session().run()->steps()->steps();
    return steps.empty() ? 0 : static_cast<int>(steps.back());
  }
  bool hasSteps(int last) {
    return wait_for([&] { return last_step() == last; });
  }
  QString bar(const char* name) { return named<MessageBar>(window, name)->text(); }
  RunState state() { return window.session().run()->summary().state; }
  bool isIn(RunState wanted) {
    return wait_for([&] { return state() == wanted; });
  }

  std::unique_ptr<RankStatusFile> rank;
};

TEST_F(Remote, IsFollowedThroughTheDialogByKeysAndBackfilledAfterTheServerWasGone) {
  auto server = serve();
  ASSERT_GT(server->port(), 0);
  openBy(server->address(), server->token());
  ASSERT_TRUE(hasSteps(5));
  EXPECT_TRUE(window.session().run()->isCopy());
  EXPECT_TRUE(isIn(RunState::running)) << bar("State of the run").toStdString();
  // The plan comes with it, and the copy is where the user's caches are.
  EXPECT_TRUE(wait_for([&] { return window.session().plan() != nullptr; }));
  const fs::path copy = window.session().run()->folder();
  EXPECT_EQ(copy.parent_path().parent_path(), copies_folder());
  EXPECT_TRUE(copies_folder().string().starts_with(at("cache").string()));
  // Live.
  steps(6, 8);
  EXPECT_TRUE(hasSteps(8));
  // The server goes, and the run goes on.
  const int port = server->port();
  server.reset();
  ASSERT_TRUE(isIn(RunState::unreached));
  EXPECT_TRUE(bar("State of the run").startsWith("not reached since"))
      << bar("State of the run").toStdString();
  steps(9, 40);
  rest(500);
  EXPECT_EQ(last_step(), 8);
  server = serve(port);
  ASSERT_EQ(server->port(), port);
  EXPECT_TRUE(hasSteps(40));
  EXPECT_TRUE(isIn(RunState::running)) << bar("State of the run").toStdString();
  std::ifstream original(run() / "metrics.jsonl"), copied(copy / "metrics.jsonl");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(original)), {}),
            std::string((std::istreambuf_iterator<char>(copied)), {}));
}

TEST_F(Remote, OneOfSeveralRunsIsChosenByTheMouse) {
  fs::create_directories(at("SECOND"));
  std::ofstream(at("SECOND") / "metrics.jsonl") << "{\"step\": 77, \"data\": {}}\n";
  Served server({served_folder(), QString::fromStdString(at("SECOND").string())}, at("token"));
  qputenv("TESSERA_REMOTE_TOKEN", server.token().toUtf8());
  // As with --remote: two runs are there, and the name has none.
  QStringList names;
  with_dialog(&window, [&names](QDialog& dialog) {
    auto* runs = named<QListWidget>(dialog, "Runs that are served there");
    EXPECT_TRUE(wait_for([&] { return runs->count() == 2; }));
    for (int i = 0; i < runs->count(); ++i) names << runs->item(i)->text();
    QTest::mouseClick(runs->viewport(), Qt::LeftButton, {},
                      runs->visualItemRect(runs->item(1)).center());
    for (QPushButton* button : dialog.findChildren<QPushButton*>()) {
      if (button->text() == "&Open") QTest::mouseClick(button, Qt::LeftButton);
    }
    if (dialog.isVisible()) dialog.reject();
  });
  EXPECT_TRUE(window.openRemote({server.port(), {}}, token_of_environment()));
  EXPECT_TRUE(hasSteps(77));
  EXPECT_EQ(names, (QStringList{"RUN", "SECOND"}));
}

TEST_F(Remote, IsRememberedAsTheRemoteRun) {
  const QString memory = folder.filePath("window.json"), file = folder.filePath("study.json");
  auto server = serve();
  const std::string place = QString("remote:%1/RUN").arg(server->address()).toStdString();
  {
    MainWindow other(memory.toStdString());
    other.openRemote({server->port(), {}}, server->token().toStdString());
    ASSERT_TRUE(wait_for([&] { return !other.session().run()->steps()->steps().empty(); }));
    ASSERT_TRUE(other.saveProject(file));
    EXPECT_TRUE(other.close());
    EXPECT_EQ(other.workspace().recent_runs, QStringList{QString::fromStdString(place)});
  }
  Problems problems;
  const auto project = read_project(file.toStdString(), problems);
  ASSERT_TRUE(project) << problemsText(problems).toStdString();
  EXPECT_EQ(project->runs, (std::vector<RunPlace>{RemoteName{server->port(), "RUN"}}));
  // Opened again: with the token of the environment it goes on by itself.
  qputenv("TESSERA_REMOTE_TOKEN", server->token().toUtf8());
  steps(6, 6);
  ASSERT_TRUE(window.openProject(file));
  EXPECT_TRUE(hasSteps(6));
  EXPECT_EQ(window.session().project().runs, project->runs);
  // A folder that is followed instead ends the asking.
  ASSERT_TRUE(window.openRun(served_folder()));
  EXPECT_FALSE(window.session().remote()->isKept());
  EXPECT_EQ(window.session().project().runs, (std::vector<RunPlace>{run()}));
  // Nobody is there: the copy is shown, and says so.
  server.reset();
  ASSERT_TRUE(window.openProject(file));
  EXPECT_TRUE(hasSteps(6));
  EXPECT_TRUE(isIn(RunState::unreached));
}

TEST_F(Remote, AWrongTokenAndAnEmptyPortAreTold) {
  auto server = serve();
  const QString wrong(64, '0');
  RemoteDialog dialog(server->address(), wrong.toStdString(), &window);
  const auto* problem = named<QLabel>(dialog, "What is missing");
  EXPECT_TRUE(wait_for([&] { return problem->text().contains("the token is refused"); }))
      << problem->text().toStdString();
  auto* address = named<QLineEdit>(dialog, "Address");
  const auto says = [&](const QString& text, const QString& wanted) {
    address->clear();
    QTest::keyClicks(address, text);
    EXPECT_TRUE(wait_for([&] { return problem->text().contains(wanted); }))
        << problem->text().toStdString();
  };
  says("10.0.0.1:7070", "10.0.0.1:7070 is no 127.0.0.1:PORT");
  says("", "An address is missing");
  auto* token = named<QLineEdit>(dialog, "Token");
  token->setText("abc");
  says("127.0.0.1:7070", "That is no token: it has 3 letters");
  token->clear();
  says("127.0.0.1:7070", "A token is missing");
  token->setText(wrong);
  const QString port = server->address();
  server.reset();
  says(port, "refused");
  // Of a run that was never copied the page says what keeps it.
  EXPECT_TRUE(window.openRemote({port.section(':', 1).toInt(), "RUN"}, wrong.toStdString()));
  EXPECT_TRUE(
      wait_for([&] { return bar("What is wrong with the run's files").contains("refused"); }));
}

// Whoever answers never says a word: neither the dialog nor the window waits for it.
TEST_F(Remote, APortThatNeverAnswersHoldsNobody) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  ASSERT_EQ(::bind(listener, address, size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, address, &size), 0);
  const int port = ntohs(here.sin_port);
  const std::string token(64, 'a');
  QElapsedTimer timer;
  {
    RemoteDialog dialog(QString("127.0.0.1:%1").arg(port), token, &window);
    rest(600);  // it asks by now
    window.openRemote({port, "RUN"}, token);
    rest(300);
    timer.start();
  }
  window.openRun(QString::fromStdString(kSample.string()), false);
  EXPECT_LT(timer.elapsed(), 5000);
  EXPECT_FALSE(window.session().remote()->isKept());
  ::close(listener);
}

// The run's own files say what it heard; nothing is written into the copy but what comes back.
TEST_F(Remote, IsPausedGoesOnAndIsStoppedByKeys) {
  auto server = serve();
  openBy(server->address(), server->token());
  ASSERT_TRUE(isIn(RunState::running)) << bar("State of the run").toStdString();
  const auto* page = window.findChild<RunPage*>();
  const auto can = [&](int control) {
    return wait_for([&] { return page->controls()[control]->isEnabled(); });
  };
  ASSERT_TRUE(can(1));
  press(Qt::Key_F7, {});
  EXPECT_TRUE(wait_for([&] { return pause_requested(run()); }));
  ASSERT_TRUE(can(2));  // the copy has the pause as well
  press(Qt::Key_F8, {});
  EXPECT_TRUE(wait_for([&] { return !pause_requested(run()); }));
  ASSERT_TRUE(can(3));
  with_dialog(&window, [](QDialog& dialog) {
    for (auto* button : dialog.findChildren<QPushButton*>()) {
      if (button->text().contains("Yes")) QTest::mouseClick(button, Qt::LeftButton);
    }
  });
  press(Qt::Key_F9, {});
  EXPECT_TRUE(wait_for([&] { return stop_requested(run()); }));
  EXPECT_EQ(bar("What is wrong with the run's files"), "");
}

TEST_F(Remote, WhatItMayNotBeToldIsSaidAndStays) {
  const Served server({served_folder(), "--read-only"}, at("token"));
  openBy(server.address(), server.token());
  ASSERT_TRUE(isIn(RunState::running));
  ASSERT_TRUE(wait_for([&] { return window.session().canTell(); }));
  press(Qt::Key_F7, {});
  const auto said = [&] {
    return bar("What is wrong with the run's files").contains("served for reading alone");
  };
  EXPECT_TRUE(wait_for(said));
  steps(6, 8);
  ASSERT_TRUE(hasSteps(8));  // contacts that went well do not take it away
  rest(1500);
  EXPECT_TRUE(said());
  EXPECT_FALSE(pause_requested(run()));
}

// Nobody was there to hear it; once somebody is again, that is over.
TEST_F(Remote, ThatNobodyHeardItIsGoneOnceTheServerIsBack) {
  auto server = serve();
  const int port = server->port();
  openBy(server->address(), server->token());
  ASSERT_TRUE(isIn(RunState::running));
  ASSERT_TRUE(wait_for([&] { return window.session().canTell(); }));
  server.reset();
  press(Qt::Key_F7, {});
  const char* const name = "What is wrong with the run's files";
  ASSERT_TRUE(wait_for([&] { return bar(name).contains("was not told"); }));
  ASSERT_TRUE(isIn(RunState::unreached));
  EXPECT_TRUE(bar(name).contains("was not told"));
  server = serve(port);
  ASSERT_TRUE(isIn(RunState::running));
  EXPECT_TRUE(wait_for([&] { return bar(name).isEmpty(); })) << bar(name).toStdString();
}

TEST_F(Remote, ThePaletteHasIt) {
  QStringList names;
  for (const QAction* action : commandsOf(*window.menuBar())) names << nameOf(*action);
  EXPECT_TRUE(names.contains("Open remote run"));
}

// Its heartbeat alone would tell it after two minutes.
TEST_F(Remote, ARankThatIsKilledThereIsLostAtOnce) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  std::ofstream(run() / "lock") << "process " << ::getpid() << " on " << host << "\n";
  const pid_t other = ::fork();
  if (other == 0) {
    const RankStatusFile file(run(), 1, RankLife{.marks_end = false});
    while (true) ::pause();
  }
  ASSERT_GT(other, 0);
  ASSERT_TRUE(wait_for([&] { return read_rank_statuses(run()).size() == 2; }));
  const auto server = serve();
  openBy(server->address(), server->token());
  ASSERT_TRUE(hasSteps(5));
  ASSERT_TRUE(wait_for([&] { return window.session().run()->ranks()->rowCount() > 1; }));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_TRUE(isIn(RunState::lost));
  EXPECT_TRUE(bar("State of the run").startsWith("rank 1 was lost in load"))
      << bar("State of the run").toStdString();
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
