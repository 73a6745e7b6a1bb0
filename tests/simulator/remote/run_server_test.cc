// Reading a folder fails while a server of runs reads it: the question is answered, and the next
// one on the same connection, too.
//
// This program's own readdir stands before the C library's and fails where a test says.
#include "simulator/remote/run_server.h"

#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "simulator/remote/run_client.h"

namespace {
std::atomic<bool> disk_fails = false;
}

// Behind the first entry of a folder, as its opening tells of what fails before.
extern "C" dirent* readdir(DIR* folder) {
  static auto* const real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  static std::atomic<bool> entered = false;
  if (disk_fails && entered.exchange(false)) {
    errno = EIO;
    return nullptr;
  }
  dirent* const entry = real(folder);
  entered = entry != nullptr && entry->d_name[0] != '.';
  return entry;
}

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::size_t kMost = 4096;

// Serves an empty run until the test is over.
class Served : public testing::Test {
 protected:
  Served() : server_(0, "token", {{"RUN", folder_}}, ServeRights::read_and_signal) {
    fs::create_directories(folder_ / "ranks");
    std::ofstream(folder_ / "ranks/0") << "no status";
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Served() override {
    disk_fails = false;
    server_.stop();
    thread_.join();
    fs::remove_all(folder_);
  }

  fs::path folder_ = fs::temp_directory_path() / ("tessera-served-" + std::to_string(getpid()));
  RunServer server_;
  std::thread thread_;
};

TEST_F(Served, ADiskThatFailsCostsOneAnswer) {
  RunClient client(server_.port(), "token");
  const std::stop_token never;
  const auto stop = [&] { return client.post("/runs/0/signals/stop", kMost, never); };
  EXPECT_EQ(stop().status, 409);  // no ranks
  disk_fails = true;
  const RunReply fault = stop();
  EXPECT_EQ(fault.fault, "");
  EXPECT_EQ(fault.status, 500);
  EXPECT_THAT(fault.body, HasSubstr("Input/output error"));
  EXPECT_EQ(client.get("/runs/0", {}, kMost, never).status, 500);
  disk_fails = false;
  EXPECT_EQ(stop().status, 409);
  EXPECT_EQ(client.get("/runs/0", {}, kMost, never).status, 200);
}

}  // namespace
}  // namespace tessera
