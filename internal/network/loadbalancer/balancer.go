// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Balancer is one load balancer: whose it is, its addresses, which it keeps as long as its Service exists, and what it
// serves.
type Balancer struct {
	// Cluster is the cluster's name, Namespace and Service name the Service, and UID is the Service's.
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Service   string `json:"service"`
	UID       string `json:"uid"`
	// DNSName is its name in the VPC.
	DNSName string `json:"dnsName"`
	// Address is its address in the VPC. Its connections to targets come from it, too.
	Address netip.Addr `json:"address"`
	// HostAddress is its address on the host. A balancer has no such address until it listens on the host. Internal
	// balancers never do.
	HostAddress netip.Addr `json:"hostAddress"`
	Spec
}

// Spec is what a balancer serves.
type Spec struct {
	// Internal says that only the VPC reaches it.
	Internal bool `json:"internal,omitempty"`
	// SourceRanges are the addresses that clients may have, as the balancer sees them; everybody if empty.
	SourceRanges []netip.Prefix `json:"sourceRanges,omitempty"`
	// AffinitySeconds is how long the connections of one client address go to one target after the last of them began;
	// 0 for no affinity.
	AffinitySeconds int32 `json:"affinitySeconds,omitempty"`
	// IdleSeconds is how long a TCP connection without a byte is kept.
	IdleSeconds int32 `json:"idleSeconds,omitempty"`
	// ProxyProtocol says that each TCP connection to a target begins with a header of the PROXY protocol, version 2.
	ProxyProtocol bool       `json:"proxyProtocol,omitempty"`
	Listeners     []Listener `json:"listeners,omitempty"`
}

// Protocol is that of a listener, as Kubernetes writes it.
type Protocol string

// The protocols of listeners.
const (
	TCP Protocol = "TCP"
	UDP Protocol = "UDP"
)

// Listener is one port of a balancer.
type Listener struct {
	Protocol Protocol `json:"protocol"`
	Port     uint16   `json:"port"`
	Check    Check    `json:"check"`
	Targets  []Target `json:"targets,omitempty"`
}

// Check is how the health of a listener's targets is found out.
type Check struct {
	// Protocol is TCP for a connection, HTTP for a GET that must be answered with 200, and empty for none: a target is
	// as it is said to be.
	Protocol string `json:"protocol,omitempty"`
	// Port is asked at the target's address; 0 for the target's own.
	Port uint16 `json:"port,omitempty"`
	Path string `json:"path,omitempty"`
}

// The protocols of checks.
const (
	CheckTCP  = "TCP"
	CheckHTTP = "HTTP"
)

// Target is where a listener's connections go.
type Target struct {
	Address netip.AddrPort `json:"address"`
	// Draining targets keep the connections that they have. They get new ones only if no other target is left, as with
	// kube-proxy.
	Draining bool `json:"draining,omitempty"`
}

// MaxListeners is how many ports a balancer may have, as AWS's network load balancers do.
const MaxListeners = 50

// MaxPerCluster is how many balancers a cluster may have: as many as AWS gives an account of network load balancers in
// a region unless it asks for more.
const MaxPerCluster = 50

// ErrTooMany means that a cluster has [MaxPerCluster] balancers.
var ErrTooMany = fmt.Errorf("a cluster has at most %d load balancers", MaxPerCluster)

// Equal reports whether two specs say the same.
func (s Spec) Equal(other Spec) bool {
	return s.Internal == other.Internal && s.AffinitySeconds == other.AffinitySeconds && s.IdleSeconds == other.IdleSeconds &&
		s.ProxyProtocol == other.ProxyProtocol && slices.Equal(s.SourceRanges, other.SourceRanges) &&
		slices.EqualFunc(s.Listeners, other.Listeners, Listener.equal)
}

func (l Listener) equal(other Listener) bool {
	return l.Protocol == other.Protocol && l.Port == other.Port && l.Check == other.Check && slices.Equal(l.Targets, other.Targets)
}

// OnHost reports whether a balancer listens on the host, and so needs an address there.
func (s Spec) OnHost() bool { return !s.Internal && len(s.Listeners) > 0 }

// Allows reports whether a client with an address may connect.
func (s Spec) Allows(client netip.Addr) bool {
	return len(s.SourceRanges) == 0 || slices.ContainsFunc(s.SourceRanges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// String is the port and the protocol, as in 80/TCP.
func (l Listener) String() string { return fmt.Sprintf("%d/%s", l.Port, l.Protocol) }

// Validate checks a balancer as it is read from a file.
func (b Balancer) Validate() error {
	switch {
	case b.Cluster == "" || b.Namespace == "" || b.Service == "" || b.UID == "":
		return errors.New("it does not say whose it is")
	case b.DNSName == "":
		return errors.New("it has no DNS name")
	case !b.Address.Is4():
		return fmt.Errorf("its address in the VPC %s is not one of IPv4", b.Address)
	case b.AffinitySeconds < 0 || b.IdleSeconds < 0:
		return errors.New("it has a time below 0")
	case len(b.Listeners) > MaxListeners:
		return fmt.Errorf("it has %d listeners, more than %d", len(b.Listeners), MaxListeners)
	}
	if b.HostAddress.IsValid() || b.OnHost() {
		if err := checkHostAddress(b.HostAddress); err != nil {
			return err
		}
	}
	for i, l := range b.Listeners {
		if l.Protocol != TCP && l.Protocol != UDP || l.Port == 0 {
			return fmt.Errorf("invalid listener %s: must be a port of TCP or UDP", l)
		}
		if slices.ContainsFunc(b.Listeners[:i], func(o Listener) bool { return o.Protocol == l.Protocol && o.Port == l.Port }) {
			return fmt.Errorf("listener %s is there twice", l)
		}
		switch l.Check.Protocol {
		case "", CheckTCP, CheckHTTP:
		default:
			return fmt.Errorf("listener %s: invalid protocol %q of its check", l, l.Check.Protocol)
		}
		for _, target := range l.Targets {
			if !target.Address.Addr().Is4() || target.Address.Port() == 0 {
				return fmt.Errorf("listener %s: invalid target %s: must be an IPv4 address and a port", l, target.Address)
			}
		}
	}
	return nil
}

// ErrNoAddress means that no subnet of the cluster has an address for a balancer.
var ErrNoAddress = errors.New("no subnet of the cluster has an address left")

// Service names a Service, and tells it from an earlier one of that name.
type Service struct{ Namespace, Name, UID string }
