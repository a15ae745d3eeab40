// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"net/netip"
)

// podCIDRPlaceholder is what containerd replaces in its template (internal/cri/server/update_runtime_config.go).
const podCIDRPlaceholder = "{{.PodCIDR}}"

// cniTemplate is a CNI network configuration, with {{.PodCIDR}} for containerd to fill in once the kubelet has told it.
type cniTemplate struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Plugins    []any  `json:"plugins"`
}

type cniPointToPoint struct {
	Type   string  `json:"type"`
	IPMasq bool    `json:"ipMasq"`
	IPAM   cniIPAM `json:"ipam"`
}

type cniIPAM struct {
	Type    string       `json:"type"`
	DataDir string       `json:"dataDir"`
	Ranges  [][]cniRange `json:"ranges"`
	Routes  []cniRoute   `json:"routes"`
}

type cniRange struct {
	Subnet string `json:"subnet"`
}

type cniRoute struct {
	Destination string `json:"dst"`
}

type cniPortmap struct {
	Type         string          `json:"type"`
	Backend      string          `json:"backend"`
	Capabilities map[string]bool `json:"capabilities"`
}

// newCNITemplate connects each pod to its node by a pair of links of its own (ptp), not by a bridge: on a bridge the
// answer of a Service's endpoint to a client on the same node takes the short way, past the translation of its address,
// unless br_netfilter sends bridged packets through the firewall, which is a setting of the whole kernel. Nothing is
// masqueraded since the VPC routes pods' addresses, and pods have no way out of it.
func newCNITemplate() cniTemplate {
	return cniTemplate{
		CNIVersion: "1.0.0",
		Name:       "muster",
		Plugins: []any{
			cniPointToPoint{
				Type: "ptp",
				IPAM: cniIPAM{
					Type:    "host-local",
					DataDir: "/var/lib/cni/networks",
					Ranges:  [][]cniRange{{{Subnet: podCIDRPlaceholder}}},
					Routes:  []cniRoute{{Destination: "0.0.0.0/0"}},
				},
			},
			cniPortmap{Type: "portmap", Backend: "nftables", Capabilities: map[string]bool{"portMappings": true}},
		},
	}
}

// podRange is the range that the machine's pods have their addresses of, if it was given one. On a host that systemd
// runs it is not ours to give: there a plugin of EC2's own may use it.
func podRange(instance Instance, layout Layout) (netip.Prefix, bool) {
	return instance.PodRange, instance.PodRange.IsValid() && !layout.Systemd
}

func cniFiles(instance Instance, layout Layout) ([]File, error) {
	pods, given := podRange(instance, layout)
	if !given {
		return nil, nil
	}
	content, err := CNIConfig(pods)
	return []File{{Path: PathCNIConfig, Mode: 0o644, Content: content}}, err
}

// CNIConfig is the network configuration that containerd makes out of its template for a range of pod addresses.
func CNIConfig(podCIDR netip.Prefix) ([]byte, error) {
	template, err := indented(newCNITemplate())
	if err != nil {
		return nil, fmt.Errorf("writing network configuration: %w", err)
	}
	return bytes.ReplaceAll(template, []byte(podCIDRPlaceholder), []byte(podCIDR.String())), nil
}
