#include "cost_models/layout/sender_flow.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

/// Makes the links with flow a forest: every cycle is emptied in the direction that keeps more near
/// bytes; what a class sends and a holder gives in all stays the same.
class Forest {
 public:
  explicit Forest(SenderFlow& flow)
      : flow_(flow),
        classes_(flow.links.size()),
        edges_(classes_ + flow.room.size()),
        joined_(edges_.size()),
        seen_(edges_.size(), 0),
        came_(edges_.size()) {
    std::iota(joined_.begin(), joined_.end(), size_t{0});
    for (size_t c = 0; c < classes_; ++c) {
      for (size_t i = 0; i < flow.links[c].size(); ++i) {
        if (flow.links[c][i].flow > 0) insert({c, i});
      }
    }
  }

  /// Shares by class, rooted at holders: the parent holder first, then the children.
  std::vector<std::vector<SenderShare>> shares() const {
    std::vector<std::vector<SenderShare>> out(classes_);
    std::vector<char> seen(edges_.size(), 0);
    for (size_t root = classes_; root < edges_.size(); ++root) {
      if (seen[root]) continue;
      seen[root] = 1;
      std::vector<size_t> stack{root};
      while (!stack.empty()) {
        const size_t holder = stack.back();
        stack.pop_back();
        for (const Edge& up : edges_[holder]) {
          if (seen[up.demand]) continue;
          seen[up.demand] = 1;
          out[up.demand].push_back(share(up));
          for (const Edge& down : edges_[up.demand]) {
            if (seen[node(down)]) continue;
            seen[node(down)] = 1;
            out[up.demand].push_back(share(down));
            stack.push_back(node(down));
          }
        }
      }
    }
    return out;
  }

 private:
  struct Edge {
    size_t demand = 0, link = 0;
    bool operator==(const Edge&) const = default;
  };

  SenderFlow::Link& link(const Edge& edge) const { return flow_.links[edge.demand][edge.link]; }
  size_t node(const Edge& edge) const { return classes_ + static_cast<size_t>(link(edge).holder); }
  SenderShare share(const Edge& edge) const { return {link(edge).holder, link(edge).flow}; }

  /// Representative of the nodes that were ever connected with this one (disjoint sets).
  size_t joined(size_t at) {
    while (joined_[at] != at) at = joined_[at] = joined_[joined_[at]];
    return at;
  }

  void insert(const Edge& edge) {
    std::vector<Edge> cycle;
    const size_t a = joined(node(edge)), b = joined(edge.demand);
    if (a == b) cycle = path(node(edge), edge.demand);
    joined_[a] = b;
    edges_[edge.demand].push_back(edge);
    edges_[node(edge)].push_back(edge);
    if (cycle.empty()) return;
    cycle.insert(cycle.begin(), edge);
    empty_cycle(cycle);
  }

  /// Edges from one node to another inside the forest; empty when they are not connected.
  std::vector<Edge> path(size_t from, size_t to) {
    ++search_;
    std::vector<size_t> queue{from};
    seen_[from] = search_;
    for (size_t head = 0; head < queue.size() && seen_[to] != search_; ++head) {
      const size_t here = queue[head];
      for (const Edge& edge : edges_[here]) {
        const size_t other = here < classes_ ? node(edge) : edge.demand;
        if (seen_[other] == search_) continue;
        seen_[other] = search_;
        came_[other] = edge;
        queue.push_back(other);
      }
    }
    std::vector<Edge> found;
    if (seen_[to] != search_) return found;
    for (size_t here = to; here != from;
         here = here < classes_ ? node(came_[here]) : came_[here].demand) {
      found.push_back(came_[here]);
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  void empty_cycle(const std::vector<Edge>& cycle) {
    std::array<Bytes, 2> least;
    least.fill(Bytes{std::numeric_limits<std::int64_t>::max()});
    int gain = 0;
    for (size_t i = 0; i < cycle.size(); ++i) {
      least[i % 2] = std::min(least[i % 2], link(cycle[i]).flow);
      if (link(cycle[i]).near) gain += i % 2 == 0 ? 1 : -1;
    }
    const size_t shrinks = gain >= 0 ? 1 : 0;
    for (size_t i = 0; i < cycle.size(); ++i) {
      link(cycle[i]).flow += i % 2 == shrinks ? -least[shrinks] : least[shrinks];
    }
    for (const Edge& edge : cycle) {
      if (link(edge).flow > 0) continue;
      std::erase(edges_[edge.demand], edge);
      std::erase(edges_[node(edge)], edge);
    }
  }

  SenderFlow& flow_;
  size_t classes_;
  std::vector<std::vector<Edge>> edges_;  // by node: classes, then holders
  std::vector<size_t> joined_;
  int search_ = 0;
  std::vector<int> seen_;   // the search that saw the node
  std::vector<Edge> came_;  // the edge by which it did
};

}  // namespace

SenderFlow::SenderFlow(const std::vector<DemandClass>& classes, const std::vector<int>& active,
                       const std::vector<char>& closed)
    : left(active.size()),
      room(closed.size()),
      links(active.size()),
      classes_(static_cast<int>(active.size())),
      users_(closed.size()) {
  for (size_t c = 0; c < active.size(); ++c) {
    const DemandClass& demand = classes[static_cast<size_t>(active[c])];
    left[c] = demand.bytes;
    for (size_t i = 0; i < demand.holders.size(); ++i) {
      const int holder = demand.holders[i];
      if (closed[at(holder)]) continue;
      users_[static_cast<size_t>(holder)].push_back(
          {static_cast<int>(c), static_cast<int>(links[c].size())});
      links[c].push_back({holder, !demand.near.empty() && demand.near[i], {}});
    }
  }
}

void SenderFlow::augment(bool far) {
  far_ = far;
  while (levels()) {
    next_class_.assign(links.size(), 0);
    next_holder_.assign(users_.size(), 0);
    for (int c = 0; c < classes_; ++c) {
      while (left[at(c)] > 0) {
        const Bytes placed = push_class(c, left[at(c)]);
        if (placed == 0) break;
        left[at(c)] -= placed;
      }
    }
  }
}

bool SenderFlow::satisfied() const {
  return std::all_of(left.begin(), left.end(), [](Bytes bytes) { return bytes == 0; });
}

bool SenderFlow::levels() {
  depth_.assign(at(classes_) + users_.size(), -1);
  std::vector<int> queue;
  for (int c = 0; c < classes_; ++c) {
    if (left[at(c)] > 0) depth_[at(c)] = 0, queue.push_back(c);
  }
  bool exit = false;
  const auto visit = [&](int node, int depth) {
    if (depth_[at(node)] < 0) depth_[at(node)] = depth, queue.push_back(node);
  };
  for (size_t head = 0; head < queue.size(); ++head) {
    const int node = queue[head], depth = depth_[at(node)] + 1;
    if (node < classes_) {
      for (const Link& link : links[at(node)]) {
        if (link.near || far_) visit(classes_ + link.holder, depth);
      }
    } else {
      exit = exit || room[at(node - classes_)] > 0;
      for (const User& user : users_[at(node - classes_)]) {
        if (links[at(user.demand)][at(user.link)].flow > 0) visit(user.demand, depth);
      }
    }
  }
  return exit;
}

Bytes SenderFlow::push_class(int c, Bytes limit) {
  for (size_t& i = next_class_[at(c)]; i < links[at(c)].size(); ++i) {
    Link& link = links[at(c)][i];
    if (!(link.near || far_)) continue;
    if (depth_[at(classes_ + link.holder)] != depth_[at(c)] + 1) continue;
    const Bytes pushed = push_holder(link.holder, limit);
    if (pushed > 0) return link.flow += pushed, pushed;
  }
  return {};
}

Bytes SenderFlow::push_holder(int h, Bytes limit) {
  if (room[at(h)] > 0) {
    const Bytes pushed = std::min(limit, room[at(h)]);
    room[at(h)] -= pushed;
    return pushed;
  }
  for (size_t& i = next_holder_[at(h)]; i < users_[at(h)].size(); ++i) {
    const User& user = users_[at(h)][i];
    Link& link = links[at(user.demand)][at(user.link)];
    if (link.flow == 0 || depth_[at(user.demand)] != depth_[at(classes_ + h)] + 1) continue;
    const Bytes pushed = push_class(user.demand, std::min(limit, link.flow));
    if (pushed > 0) return link.flow -= pushed, pushed;
  }
  return {};
}

std::vector<std::vector<SenderShare>> forest_shares(SenderFlow& flow) {
  return Forest(flow).shares();
}

}  // namespace tessera
