#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hdpsim {

/// Max-min fair rates of flows over the links they share.
///
/// A variable is one flow, or `multiplicity` equal ones over the same links. Its level is rate / weight. Rates are
/// max-min fair when every variable either runs at its cap or crosses a link that is full and on which no variable has
/// a higher level (Bertsekas and Gallager, Data Networks, 2nd ed., 6.5.2): that link is its bottleneck. They are
/// unique, and progressive filling finds them: it raises all levels together, and freezes a variable when its cap or a
/// link that fills up holds it back.
///
/// A coupled variable is a set of flows that all move at one rate x, because each passes on what another brings: the
/// hops of a ring whose data are pipelined. It loads link l with a_l x, where a_l is the number of its flows that cross
/// l (any positive number: a flow that moves half as much counts half). Nothing else changes. With levels h_v, weights
/// w_v and numbers n_v of equal copies, the feasible set is still convex: for every link l and variable v
///
///     sum over v of a_lv w_v n_v h_v <= capacity of l,        w_v h_v <= cap of v,
///
/// and the argument for bottlenecks only needs that raising one level within this set means lowering another one on a
/// full link. A link that fills up while all levels rise together therefore does so at (capacity - frozen load) / (sum
/// of a_lv w_v n_v over the rest). Together with one flow, k coupled flows on a link get k / (k + 1) of it, as k flows
/// would that are not limited elsewhere.
///
/// The solver keeps the rates of an earlier state and repairs them. A region starts with the new variables and those
/// whose bottleneck changed. It is filled with everything else held fixed, and grows by the fixed variables for which
/// the condition of max-min fairness no longer holds, until it holds for all. Variables outside the region had the
/// right rates already. Changes made between two queries of the rates are repaired together.
///
/// A link that a variable has for itself is no part of the region: it is a limit of this variable alone, as its cap is.
///
/// Cost of a repair: O(r log r) for r (variable, shared link) pairs of the region plus the variables on the region's
/// links, per growth of the region. Memory: O(links + variables x their links). Deterministic: the same calls give the
/// same bits.
class FairShare {
 public:
  using Link = std::uint32_t;
  using Variable = std::uint32_t;
  /// The number of a coupled variable's flows that cross a link.
  struct Load {
    Link link;
    double flows;  ///< > 0
    friend bool operator==(const Load&, const Load&) = default;
  };

  /// `capacities`: B/s of every link, greater than 0.
  explicit FairShare(std::vector<double> capacities);

  /// Adds a variable over distinct links (checked); `cap` is the maximum rate of each of its flows. Without links the
  /// rate is the cap, which must then be finite. The number of a removed variable is used again.
  Variable add(std::span<const Link> links, double cap, double weight = 1, std::int64_t multiplicity = 1);
  /// Adds a coupled variable over distinct links (checked); `cap` is the maximum rate of each of its flows, `weight` as
  /// above.
  Variable add_coupled(std::span<const Load> loads, double cap, double weight = 1);
  void remove(Variable id);

  /// B/s of each flow of the variable.
  [[nodiscard]] double rate(Variable id);
  /// The full link that holds the variable back; no value if its cap does.
  [[nodiscard]] std::optional<Link> bottleneck(Variable id);
  /// Variables whose rate has changed since the last call, new ones included and removed ones not, in ascending order.
  void take_changed(std::vector<Variable>& changed);

  [[nodiscard]] double capacity(Link link) const { return links_[link].capacity; }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  /// The load of the link in B/s.
  [[nodiscard]] double load(Link link);

 private:
  static constexpr Link no_link = UINT32_MAX;
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  /// A variable's place in the list of one of its links.
  struct Seat {
    Variable variable;
    std::uint32_t hop;  ///< Index into the variable's hops.
    double flows;       ///< Number of a coupled variable's flows on the link; otherwise 1.
  };
  struct Hop {
    Link link;
    std::uint32_t place;  ///< Index into the link's seats.
    double flows;         ///< As in Seat.
  };
  struct VariableState {
    std::vector<Hop> hops;
    double cap = 0;
    double weight = 1;
    double flows = 1;
    bool under_way = false;
    bool in_changed = false;
    [[nodiscard]] double load_of(const Hop& hop) const { return weight * flows * hop.flows; }  ///< At level 1.
  };
  /// What a repair asks of every variable on a link, whether of the region or not: kept apart, so that it is dense.
  struct Share {
    double level = 0;
    double rate = 0;                ///< Of all equal copies together.
    Link bottleneck = no_link;      ///< No link if its cap holds it back, or if it is new.
    std::uint32_t place = nowhere;  ///< Index into the region's variables.
  };
  struct LinkState {
    double capacity = 0;
    std::vector<Seat> seats;
    std::uint32_t place = nowhere;  ///< Index into the region's links.
    bool dirty = false;
  };
  struct RegionVariable {
    Variable id;
    std::uint32_t first_hop;  ///< Its shared links, in region_hops_: those before the next variable's.
    double level = 0;         ///< What it gets in the region ...
    Link bottleneck = no_link;
    bool frozen = false;  ///< ... once it is frozen.
  };
  struct RegionHop {
    std::uint32_t link;  ///< Index into the region's links.
    double load;         ///< Of the variable at level 1.
  };
  /// A link that a variable of the region shares.
  struct RegionLink {
    Link link;
    double free = 0;            ///< Capacity less the fixed variables' rates.
    double weight = 0;          ///< Sum over the region's variables,
    std::uint32_t members = 0;  ///< and their number.
    std::uint32_t open = 0;     ///< While the region is filled: those that are not frozen yet,
    double left = 0;            ///< capacity still free,
    double thawed = 0;          ///< weight that shares it,
    double top = 0;             ///< and highest level of the region's variables.
    bool binds = false;         ///< A variable of the region is held back here.
  };
  /// A level at which a link fills up, or at which a variable reaches a limit of its own: its cap, or the narrowest
  /// link that it has for itself.
  struct Filling {
    double level;
    Link link;         ///< no_link: a cap.
    std::uint32_t of;  ///< The place of the link in the region; for a limit, its variable.
    /// Lower levels come first, among equal ones caps by their variables, then links in their order.
    [[nodiscard]] bool comes_before(const Filling& other) const {
      if (level != other.level) return level < other.level;
      return link != other.link ? link + 1 < other.link + 1 : of < other.of;
    }
    /// The standard heaps keep the greatest in front.
    bool operator<(const Filling& other) const { return other.comes_before(*this); }
  };

  Variable begin(std::size_t hops, double cap, double weight, double flows);
  void take_seat(Variable id, Link index, double flows);
  void mark(Link link);
  void settle();
  void start_region();
  void join(Variable id);
  void touch(Link link);
  void fill();
  void start_filling();
  void freeze(std::uint32_t place, double level, Link bottleneck);
  [[nodiscard]] std::size_t freeze_link(RegionLink& state, double level);
  [[nodiscard]] std::span<const RegionHop> hops_of(std::uint32_t place) const;
  bool grow();
  [[nodiscard]] static bool is_violated(const Share& share, const RegionLink& state, bool is_full);
  void commit();

  std::vector<LinkState> links_;
  std::vector<VariableState> variables_;
  std::vector<Share> shares_;  // by variable
  std::vector<Variable> unused_;
  std::vector<Variable> arrived_;
  std::vector<Link> dirty_;
  std::vector<RegionVariable> region_;
  std::vector<RegionHop> region_hops_;
  std::vector<RegionLink> region_links_;
  std::vector<Filling> limits_;  // of the region's variables: a heap while it is filled
  std::vector<Filling> heap_;
  std::vector<Variable> changed_;
};

}  // namespace hdpsim
