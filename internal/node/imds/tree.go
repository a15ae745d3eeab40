// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Instance is what the service tells a machine about itself.
type Instance struct {
	ID, Type string
	// AccountID owns the instance, and ImageID is what it was launched from; empty is not told.
	AccountID, ImageID string
	// SecurityGroupIDs are those that are in force.
	SecurityGroupIDs []string
	// KeyName is its key pair, PublicKey the public half in OpenSSH's format; empty if it has none.
	KeyName, PublicKey string
	// Scaled reports whether it is of an Auto Scaling group.
	Scaled bool
	// Spot reports whether it is a spot instance.
	Spot bool
	// Lifecycle is the state that it is to get to there, such as Warmed:Stopped; empty is InService.
	Lifecycle      string
	PrivateIP      netip.Addr
	IPv6           netip.Addr // not valid if it has none
	PrivateDNSName string
	// Region and Zone that it is in; ZoneID is what all accounts call the zone by.
	Region, Zone, ZoneID string
	MAC                  net.HardwareAddr
	LaunchTime           time.Time
	// Network is the range of addresses of its VPC, Subnet that of its subnet. Both have an id.
	Network, Subnet netip.Prefix
	VPCID, SubnetID string
	// PodRange is the range of the subnet that its pods have their addresses of; not valid if they have none.
	PodRange netip.Prefix
	// APIServers are the API servers of clusters with an address in the VPC: where they listen on the host, and their
	// URL in the VPC.
	APIServers map[netip.AddrPort]string
	// Leaves are further texts, by their path below latest/meta-data/, and take the place of others: what is announced to
	// the machine.
	Leaves map[string]string
	// HopLimit is how many hops an answer may take: 1 reaches the machine, 2 the pods behind it.
	HopLimit int
}

// leafPodRange is where EC2 has the ranges that it delegated to a network interface.
const leafPodRange = "ipv4-prefix"

// rootDevice is the name of the disk that an instance boots from.
const rootDevice = "/dev/xvda"

// APIServerPath is where latest/meta-data/ has the URL in the VPC of the API server that listens at an address of the
// host. EC2 has nothing of the kind: an endpoint of EKS's is the same everywhere.
func APIServerPath(host netip.AddrPort) string {
	return fmt.Sprintf("muster/api-servers/%s/%d", host.Addr(), host.Port())
}

// PublicKeyPath is where latest/meta-data/ has the public key of the instance's key pair.
const PublicKeyPath = publicKeys + "0/openssh-key"

// publicKeys is the directory of public keys. Unlike any other, a list of it has the name of the key beside the number: "0=NAME".
const publicKeys = "public-keys/"

// metadata are the texts below latest/meta-data/, by path.
func (i Instance) metadata() map[string]string {
	adapter := "network/interfaces/macs/" + i.MAC.String() + "/"
	leaves := map[string]string{
		"hostname":                         i.PrivateDNSName,
		"instance-id":                      i.ID,
		"instance-life-cycle":              "on-demand",
		"instance-type":                    i.Type,
		"local-hostname":                   i.PrivateDNSName,
		"local-ipv4":                       i.PrivateIP.String(),
		"mac":                              i.MAC.String(),
		"placement/availability-zone":      i.Zone,
		"placement/availability-zone-id":   i.ZoneID,
		"placement/region":                 i.Region,
		adapter + "device-number":          "0",
		adapter + "interface-id":           "eni-" + strings.TrimPrefix(i.ID, "i-"),
		adapter + "local-hostname":         i.PrivateDNSName,
		adapter + "local-ipv4s":            i.PrivateIP.String(),
		adapter + "mac":                    i.MAC.String(),
		adapter + "subnet-id":              i.SubnetID,
		adapter + "subnet-ipv4-cidr-block": i.Subnet.String(),
		adapter + "vpc-id":                 i.VPCID,
		adapter + "vpc-ipv4-cidr-block":    i.Network.String(),
		adapter + "vpc-ipv4-cidr-blocks":   i.Network.String(),
	}
	// A root disk, no volumes: the EBS CSI driver counts those, and takes an error for the end of instance metadata.
	leaves["block-device-mapping/ami"], leaves["block-device-mapping/root"] = rootDevice, rootDevice
	// Nothing is planned for an instance unless a drill says so: then the leaves that announce an interruption
	// (spot/instance-action, events/recommendations/rebalance) exist.
	leaves["events/maintenance/scheduled"], leaves["events/maintenance/history"] = "[]", "[]"
	leaves["services/domain"], leaves["services/partition"] = "amazonaws.com", "aws"
	for name, value := range map[string]string{"ami-id": i.ImageID, adapter + "owner-id": i.AccountID, adapter + "security-group-ids": strings.Join(i.SecurityGroupIDs, "\n")} {
		if value != "" {
			leaves[name] = value
		}
	}
	if i.Spot {
		leaves["instance-life-cycle"] = "spot"
	}
	if i.Scaled {
		leaves["autoscaling/target-lifecycle-state"] = cmp.Or(i.Lifecycle, "InService")
	}
	for address, url := range i.APIServers {
		leaves[APIServerPath(address)] = url
	}
	if i.PublicKey != "" {
		leaves[PublicKeyPath] = i.PublicKey + " " + i.KeyName
	}
	if i.PodRange.IsValid() {
		leaves[adapter+leafPodRange] = i.PodRange.String()
	}
	if i.IPv6.IsValid() {
		leaves[adapter+"ipv6s"] = i.IPv6.String()
	}
	maps.Copy(leaves, i.Leaves)
	return leaves
}

// document is the instance identity document (EC2's user guide, "Instance identity documents"). Properties that an
// instance here does not have, such as a kernel, are left out.
func (i Instance) document() (string, error) {
	architecture := map[string]string{"amd64": "x86_64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	raw, err := json.MarshalIndent(struct {
		AccountID        string `json:"accountId,omitempty"`
		Architecture     string `json:"architecture"`
		AvailabilityZone string `json:"availabilityZone"`
		ImageID          string `json:"imageId,omitempty"`
		InstanceID       string `json:"instanceId"`
		InstanceType     string `json:"instanceType"`
		PendingTime      string `json:"pendingTime"`
		PrivateIP        string `json:"privateIp"`
		Region           string `json:"region"`
		Version          string `json:"version"`
	}{
		i.AccountID, architecture, i.Zone, i.ImageID, i.ID, i.Type, i.LaunchTime.UTC().Format(time.RFC3339), i.PrivateIP.String(), i.Region, "2017-09-30",
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing identity document: %w", err)
	}
	return string(raw), nil
}

// lookup finds a leaf, or lists what is in a directory: a line for each, those that are directories with a slash.
func lookup(leaves map[string]string, path string) (content string, ok bool) {
	path = strings.TrimSuffix(path, "/")
	if content, ok := leaves[path]; ok && path != "" {
		return content, true
	}
	prefix := path + "/"
	if path == "" {
		prefix = ""
	}
	found := map[string]bool{}
	for name := range leaves {
		if rest, below := strings.CutPrefix(name, prefix); below {
			first, _, directory := strings.Cut(rest, "/")
			if directory {
				first += "/"
			}
			found[first] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), "\n"), len(found) > 0
}
