#include "sim/decide/prices.h"

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::Problems;

/// A file of prices that is gone after the test.
class PriceFile {
 public:
  explicit PriceFile(const std::string& text) : file_(text) {}
  [[nodiscard]] Prices load() const { return load_prices(file_.path()); }
  [[nodiscard]] Problems problems() const {
    return test::problems_of([&] { (void)load(); });
  }

 private:
  test::StudyFile file_;
};

ClusterSpec cluster_of(const std::string& name, const std::string& device) {
  ClusterSpec cluster;
  cluster.name = name;
  cluster.device = device;
  return cluster;
}

TEST_CASE("a cluster is priced by its name, or else by its device", "[prices]") {
  const Prices prices = PriceFile(
                            "hardware:\n  rail: {price: 2.10 USD/GPU-hour, node_power: 10.4 kW}\n"
                            "  A100: {gpu_power: 800 W}\nelectricity: 0.09 USD/kWh\npue: 1.2\n")
                            .load();
  CHECK(prices.currency == "USD");
  CHECK(prices.electricity->amount == 0.09);
  CHECK(prices.pue == 1.2);
  const HardwarePrice& rail = price_for(prices, cluster_of("rail", "A100"));
  CHECK(rail.price->amount == 2.1);
  CHECK(rail.watts_of_gpu(8) == Approx(10'400.0 / 8));
  const HardwarePrice& other = price_for(prices, cluster_of("other", "A100"));
  CHECK_FALSE(other.price);
  CHECK(other.watts_of_gpu(8) == Approx(800));
}

TEST_CASE("a cluster without a price is refused, and so is one of two devices of which one has a price", "[prices]") {
  const Prices prices = PriceFile("hardware: {A100: {gpu_power: 800 W}}\n").load();
  CHECK(test::problems_of([&] { (void)price_for(prices, cluster_of("rail", "H100")); }) ==
        Problems{"0:0: there is no price of the cluster rail or of its device H100"});
  ClusterSpec mixed = cluster_of("rail", "A100");
  mixed.kinds.push_back({.name = "old"});
  CHECK(test::problems_of([&] { (void)price_for(prices, mixed); }) ==
        Problems{"0:0: the cluster rail has several kinds of nodes, and only A100 has a price"});
}

TEST_CASE("what is wrong with prices is told with its place, all at once", "[prices]") {
  CHECK(PriceFile("hardware:\n  a: {price: -2 USD/GPU-hour}\n  b: {gpu_power: 800}\n  c: {}\n"
                  "  d: {price: 2 USD}\n  e: {gpu_power: 1 W, node_power: 1 kW}\npue: 0.5\ncolour: red\n")
            .problems() == Problems{"2:14: \"-2 USD/GPU-hour\" is not a positive amount of money a GPU-hour",
                                    "3:18: \"800\" is not a positive power", "4:3: 'c' has neither a price nor a power",
                                    "5:14: \"2 USD\" is not a positive amount of money a GPU-hour",
                                    "6:3: 'e' has both gpu_power and node_power",
                                    "7:6: 'pue' is 0.5, it must be from 1 to 10",
                                    "8:1: the file of prices has no key 'colour'"});
  CHECK(PriceFile("pue: 1.1\n").problems() == Problems{"1:1: the file of prices needs 'hardware'"});
  CHECK(PriceFile("hardware: {}\n").problems() ==
        Problems{"1:11: 'hardware' must be a map of names of clusters or devices"});
}

TEST_CASE("prices are in one currency, and electricity needs powers", "[prices]") {
  CHECK(PriceFile("hardware: {a: {price: 2 USD/GPU-hour, gpu_power: 1 W}, b: {price: 2 EUR/GPU-hour, gpu_power: 1 W}}\n"
                  "electricity: 1 CHF/kWh\n")
            .problems() ==
        Problems{"1:67: a price in EUR, after one in USD", "2:14: a price in CHF, after one in USD"});
  CHECK(PriceFile("hardware: {a: {price: 2 USD/GPU-hour}}\nelectricity: 1 USD/kWh\n").problems() ==
        Problems{"1:12: 'a' has no power, which the price of electricity needs"});
}

}  // namespace
}  // namespace hdpsim
