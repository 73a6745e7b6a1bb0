#include "executor/http/page_server.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {

struct PageServer::Server {
  httplib::Server http;
  std::mutex mutex;  // of the page
  std::string page;
  std::atomic<bool> ended = false;  // it answers nobody any more
  std::thread listener;
};

PageServer::PageServer(int port, const std::string& path, const std::string& type)
    : server_(std::make_unique<Server>()) {
  httplib::Server& http = server_->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(1); };
  http.set_keep_alive_max_count(1);  // one thread: nobody may keep it
  http.set_read_timeout(5);
  // Not the library's choice, with which two runs could listen at one port.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http.Get(path, [server = server_.get(), type](const httplib::Request&, httplib::Response& reply) {
    const std::lock_guard lock(server->mutex);
    reply.set_content(server->page, type);
  });
  if (!http.bind_to_port("127.0.0.1", port)) {
    throw Error(ExitCode::io, "cannot listen at 127.0.0.1:" + std::to_string(port));
  }
  server_->listener = std::thread([server = server_.get()] {
    sigset_t all;  // signals are for the threads that the process has beside these
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    server->http.listen_after_bind();
    server->ended = true;
  });
}

PageServer::~PageServer() {
  // What is stopped before it runs would run for ever.
  while (!server_->http.is_running() && !server_->ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  server_->http.stop();
  server_->listener.join();
}

void PageServer::set(std::string page) {
  const std::lock_guard lock(server_->mutex);
  server_->page = std::move(page);
}

}  // namespace tessera
