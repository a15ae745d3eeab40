// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/miekg/dns"
)

// maxServers is how many name servers are asked, as by the C library (resolv.conf(5)).
const maxServers = 3

// maxResolvConf is how many bytes a resolv.conf may have.
const maxResolvConf = 64 << 10

// HostServers reads the name servers of a resolv.conf, as "192.0.2.1:53".
func HostServers(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("finding the host's name servers: %w", err)
	}
	if info.Size() > maxResolvConf {
		return nil, fmt.Errorf("finding the host's name servers: %s has %d bytes, want %d at most", path, info.Size(), maxResolvConf)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("finding the host's name servers: %w", err)
	}
	return parseServers(string(raw))
}

func parseServers(text string) ([]string, error) {
	config, err := dns.ClientConfigFromReader(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the host's name servers: %w", err)
	}
	var servers []string
	for _, server := range config.Servers {
		host, _, _ := strings.Cut(server, "%")
		if net.ParseIP(host) != nil && len(servers) < maxServers {
			servers = append(servers, net.JoinHostPort(server, config.Port))
		}
	}
	return servers, nil
}
