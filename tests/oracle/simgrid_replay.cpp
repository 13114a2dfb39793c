// usage: simgrid_replay FOLDER
//
// Replays the traffic that `hdpsim comm PATTERN --simgrid FOLDER` has written, in SimGrid, and says how far its
// arrivals are from those of hdpsim. One line on standard output: messages, processor seconds of the simulation
// (without reading the platform), largest relative difference. Knows nothing of hdpsim but its files.

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace s4u = simgrid::s4u;

struct Message {
  s4u::Host* sender = nullptr;
  s4u::Host* receiver = nullptr;
  std::uint64_t bytes = 0;
  double latency_s = 0;
  double expected_s = 0;
  double arrival_s = 0;
};

std::vector<Message> read_messages(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Message> messages;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string sender;
    std::string receiver;
    char comma = 0;
    Message message;
    std::getline(fields, sender, ',');
    std::getline(fields, receiver, ',');
    fields >> message.bytes >> comma >> message.latency_s >> comma >> message.expected_s;
    if (!fields) throw std::runtime_error("no message: " + line);
    message.sender = s4u::Host::by_name(sender);
    message.receiver = s4u::Host::by_name(receiver);
    messages.push_back(message);
  }
  return messages;
}

// Max-min fair shares of the links' full rates, as precise as doubles allow.
void configure() {
  for (const char* option : {"network/model:CM02", "network/weight-S:0", "network/TCP-gamma:0",
                             "network/crosstraffic:0", "maxmin/precision:1e-9", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(std::string(option));
  }
}

// All at once, from one actor.
void send_all(std::vector<Message>& messages) {
  std::vector<s4u::CommPtr> sent;
  sent.reserve(messages.size());
  for (const Message& message : messages) {
    sent.push_back(s4u::Comm::sendto_async(message.sender, message.receiver, message.bytes));
  }
  s4u::Comm::wait_all(sent);
  for (std::size_t i = 0; i < sent.size(); ++i) messages[i].arrival_s = sent[i]->get_finish_time();
}

double largest_difference(const std::vector<Message>& messages) {
  double largest = 0;
  for (const Message& message : messages) {
    const double difference = std::abs(message.arrival_s + message.latency_s - message.expected_s);
    largest = std::max(largest, difference / message.expected_s);
  }
  return largest;
}

int replay(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc != 2) throw std::runtime_error("usage: simgrid_replay FOLDER");
  configure();
  const std::string folder = argv[1];
  engine.load_platform(folder + "/platform.xml");
  std::vector<Message> messages = read_messages(folder + "/messages.csv");
  if (messages.empty()) throw std::runtime_error("there are no messages in " + folder);
  s4u::Actor::create("sender of all", messages.front().sender, [&messages] { send_all(messages); });
  const std::clock_t begin = std::clock();
  engine.run();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::cout << messages.size() << " " << seconds << " " << largest_difference(messages) << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << "error: " << problem.what() << "\n";
    return 1;
  }
}
