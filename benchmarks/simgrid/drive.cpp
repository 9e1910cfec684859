// Runs flows over links in SimGrid and prints its CPU seconds: of the first allocation, of the whole run.
//
//   drive LINKS.csv FLOWS.csv FINISH.csv first|whole
//
// LINKS.csv: link_id,name,bandwidth_Bps,latency_s    FLOWS.csv: flow_id,src,dst,size_bytes,start_s,path_link_ids
// Flows are in order of start. Every flow brings its own path, which SimGrid's zones, made for one route between two
// hosts, do not offer: the zone below hands out the path of the flow that starts next. All else is SimGrid's own:
// model CM02 without its corrections (what later versions call "raw"): exact max-min fairness.

#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;
using simgrid::kernel::resource::StandardLinkImpl;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::NetZoneImpl;
using simgrid::kernel::routing::Route;

struct Flow {
  uint64_t size_bytes;
  double start_s;
  std::vector<int> path;
};

static std::vector<StandardLinkImpl*> links;
static std::vector<Flow> flows;
static std::vector<sg::CommPtr> comms;
static size_t starting = 0;
static bool only_first = false;
static double all_started_cpu_s = 0;
static double begun_cpu_s = 0;

static double cpu_s()
{
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

class PathZone : public NetZoneImpl {
public:
  explicit PathZone(const std::string& name) : NetZoneImpl(name) {}
  void get_local_route(const NetPoint*, const NetPoint*, Route* into, double*) override
  {
    for (int link : flows[starting].path)
      into->link_list_.push_back(links[link]);
  }
};

// Of this program alone: the peak that getrusage gives includes that of the program which started it.
static double peak_mib()
{
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word)
    if (word == "VmHWM:") {
      double kib;
      file >> kib;
      return kib / 1024;
    }
  return 0;
}

static void report(double first_s)
{
  std::printf("version=%d.%d first_s=%.6f whole_s=%.6f peak_mib=%.1f simulated_s=%.12g\n", SIMGRID_VERSION_MAJOR,
              SIMGRID_VERSION_MINOR, first_s, cpu_s() - begun_cpu_s, peak_mib(),
              sg::Engine::get_clock());
  std::fflush(stdout);
}

static void start_all(sg::Host* from, sg::Host* to)
{
  begun_cpu_s = cpu_s();
  for (starting = 0; starting < flows.size(); ++starting) {
    const Flow& flow = flows[starting];
    if (flow.start_s > sg::Engine::get_clock())
      sg::this_actor::sleep_until(flow.start_s);
    auto comm = sg::Comm::sendto_init(from, to);
    comm->set_payload_size(flow.size_bytes);
    comm->start();
    comms.push_back(comm);
  }
  all_started_cpu_s = cpu_s();
  sg::Comm::wait_all(comms);
}

static void load_links(sg::NetZone* zone, const char* name)
{
  std::ifstream file(name);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream row(line);
    std::string id, label, bandwidth;
    std::getline(row, id, ',');
    std::getline(row, label, ',');
    std::getline(row, bandwidth, ',');
    auto* link = zone->create_link("link" + id, std::stod(bandwidth));
    link->set_latency(0)->set_sharing_policy(sg::Link::SharingPolicy::SHARED)->seal();
    links.push_back(zone->get_impl()->get_link_by_name_or_null("link" + id));
  }
}

static void load_flows(const char* name)
{
  std::ifstream file(name);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream row(line);
    std::string cell;
    Flow flow;
    for (int i = 0; i < 3; ++i)
      std::getline(row, cell, ',');
    std::getline(row, cell, ',');
    flow.size_bytes = std::stoull(cell);
    std::getline(row, cell, ',');
    flow.start_s = std::stod(cell);
    int link;
    while (row >> link)
      flow.path.push_back(link);
    flows.push_back(flow);
  }
}

static void save_finish(const char* name)
{
  std::FILE* file = std::fopen(name, "w");
  std::fprintf(file, "flow_id,finish_s\n");
  for (size_t i = 0; i < comms.size(); ++i)
    std::fprintf(file, "%zu,%.15g\n", i, comms[i]->get_finish_time());
  std::fclose(file);
}

int main(int argc, char** argv)
{
  std::vector<std::string> options = {"network/model:CM02",        "network/crosstraffic:0",  "network/weight-S:0",
                                      "network/TCP-gamma:0",       "network/latency-factor:1", "network/bandwidth-factor:1",
                                      "maxmin/precision:1e-9",     "surf/precision:1e-12"};
  sg::Engine engine(&argc, argv);
  for (const auto& option : options)
    sg::Engine::set_config(option);
  only_first = std::string(argv[4]) == "first";
  auto* zone = (new PathZone("paths"))->get_iface();
  auto* from = zone->create_host("from", 1e9)->seal();
  auto* to   = zone->create_host("to", 1e9)->seal();
  load_links(zone, argv[1]);
  load_flows(argv[2]);
  zone->seal();
  comms.reserve(flows.size());
  if (only_first)
    sg::Engine::on_time_advance_cb([](double) {
      report(cpu_s() - all_started_cpu_s);
      std::_Exit(0);
    });
  sg::Actor::create("start", from, [from, to] { start_all(from, to); });
  engine.run();
  report(0);
  save_finish(argv[3]);
  std::_Exit(0);
}
