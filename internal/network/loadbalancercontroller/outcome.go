// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/balancerplan"
	"muster.dev/muster/internal/network/loadbalancer"
)

// The reasons of Events, as far as this package finds them.
const (
	reasonServed    = "EnsuredLoadBalancer"
	reasonFailed    = "SyncLoadBalancerFailed"
	reasonFull      = "LoadBalancerRangeFull"
	reasonTooMany   = "TooManyLoadBalancers"
	reasonUnhealthy = "UnhealthyTargets"
)

// outcome is what came of a Service.
type outcome struct {
	// entry is what its status has; nil for none. With keep it is as it was.
	entry   *corev1.LoadBalancerIngress
	keep    bool
	notices []balancerplan.Notice
	again   time.Duration
	// loopback says that the balancer has an address of the host's loopback.
	loopback bool
}

// refuse has the balancer of a Service, if it has one, keep its addresses and listen nowhere.
func (r *reconciler) refuse(service *corev1.Service) (*outcome, error) {
	all, err := r.balancers.List()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(b loadbalancer.Balancer) bool { return b.UID == string(service.UID) }) {
		if _, err := r.balancers.Ensure(nameOf(service), loadbalancer.Spec{}); err != nil {
			return nil, err
		}
	}
	return &outcome{}, nil
}

func nameOf(service *corev1.Service) loadbalancer.Service {
	return loadbalancer.Service{Namespace: service.Namespace, Name: service.Name, UID: string(service.UID)}
}

// serve has the balancer of a Service serve what it is to serve, and finds out whether it does.
func (r *reconciler) serve(ctx context.Context, service *corev1.Service, spec loadbalancer.Spec) (*outcome, error) {
	made, err := r.balancers.Ensure(nameOf(service), spec)
	if errors.Is(err, loadbalancer.ErrNoAddress) {
		return &outcome{again: failedAgain, notices: []balancerplan.Notice{warning(reasonFailed, "%v: delete machines or load balancers, or add a subnet to the cluster", err)}}, nil
	}
	if errors.Is(err, loadbalancer.ErrRangeFull) {
		return &outcome{again: failedAgain, notices: []balancerplan.Notice{warning(reasonFull, "%v: delete load balancers, or choose another range for new ones by `muster up --load-balancer-range`", err)}}, nil
	}
	if errors.Is(err, loadbalancer.ErrTooMany) {
		return &outcome{again: failedAgain, notices: []balancerplan.Notice{warning(reasonTooMany, "%v: delete Services of type LoadBalancer, or put several programs behind one, as by an Ingress", err)}}, nil
	}
	if err != nil {
		return nil, err
	}
	status, err := r.balancers.Status(ctx)
	if err != nil { // the process is on its way, or it is started again: nothing is known
		return &outcome{keep: true, again: openingAgain}, nil //nolint:nilerr // it is asked again
	}
	at := slices.IndexFunc(status.Balancers, func(b balancer.ServiceStatus) bool { return b.UID == made.UID && b.Cluster == made.Cluster })
	if at < 0 || !follows(status.Balancers[at], made) {
		return &outcome{keep: true, again: openingAgain}, nil
	}
	return judge(made, status.Balancers[at]), nil
}

// follows reports whether the process has the ports that a balancer is to have.
func follows(status balancer.ServiceStatus, wanted loadbalancer.Balancer) bool {
	return slices.EqualFunc(status.Listeners, wanted.Listeners, func(s balancer.ListenerStatus, l loadbalancer.Listener) bool {
		return s.Port == l.Port && s.Protocol == l.Protocol && (wanted.Internal == (s.Host == balancer.PlaceStatus{}))
	})
}

// judge says what is published of a balancer by how its ports and targets are.
func judge(b loadbalancer.Balancer, status balancer.ServiceStatus) *outcome {
	found := &outcome{again: servedAgain, loopback: b.HostAddress.IsLoopback()}
	address := b.HostAddress
	if b.Internal {
		address = b.Address
	}
	entry := &corev1.LoadBalancerIngress{IP: address.String(), Hostname: b.DNSName, IPMode: new(corev1.LoadBalancerIPModeProxy)}
	open, unhealthy := 0, []string{}
	var ports []corev1.PortStatus
	for _, l := range status.Listeners {
		port := corev1.PortStatus{Port: int32(l.Port), Protocol: corev1.Protocol(l.Protocol)}
		if failure, at := failed(b, l); failure != nil {
			port.Error = new("muster.dev/" + failure.Code)
			found.notices = append(found.notices, warning(reasonFailed, "port %d/%s is not open at %s: %s", l.Port, l.Protocol, at, explain(*failure, at, l.Port)))
			found.again = failedAgain
		} else {
			open++
		}
		ports = append(ports, port)
		for _, t := range l.Targets {
			if t.State == balancer.Unhealthy {
				unhealthy = append(unhealthy, fmt.Sprintf("%s of port %d/%s (%s)", t.Address, l.Port, l.Protocol, t.Reason))
			}
		}
	}
	if open > 0 {
		found.entry = entry
		if open < len(ports) {
			entry.Ports = ports
		}
		found.notices = append(found.notices, balancerplan.Notice{Type: corev1.EventTypeNormal, Reason: reasonServed, Message: served(b)})
	}
	if len(unhealthy) > 0 {
		found.notices = append(found.notices, warning(reasonUnhealthy, "%s", few(unhealthy)))
	}
	return found
}

// failed is the place of a port that is not open, if there is one.
func failed(b loadbalancer.Balancer, l balancer.ListenerStatus) (*balancer.PlaceStatus, netip.Addr) {
	switch {
	case !b.Internal && !l.Host.Open:
		return &l.Host, b.HostAddress
	case !l.VPC.Open:
		return &l.VPC, b.Address
	}
	return nil, netip.Addr{}
}

// explain says what to do about a port that is not open.
func explain(s balancer.PlaceStatus, at netip.Addr, port uint16) string {
	switch s.Code {
	case balancer.AddressUnavailable:
		return fmt.Sprintf("this host does not have the address, and Muster does not change the host's network: give it to an interface, as by `ip address add %s/32 dev lo`; it is tried again every 5 s", at)
	case balancer.PortInUse:
		return fmt.Sprintf("another program of this host listens on port %d at every address (0.0.0.0): have it listen at one address, such as 127.0.0.1, or give the Service another port; it is tried again every 5 s", port)
	case balancer.PermissionDenied:
		return fmt.Sprintf("this process may not listen on ports below 1024: give the Service another port than %d, run the service as root, or lower the sysctl net.ipv4.ip_unprivileged_port_start", port)
	}
	return s.Message + "; it is tried again every 5 s"
}

func served(b loadbalancer.Balancer) string {
	where := fmt.Sprintf("at %s in the VPC (%s)", b.DNSName, b.Address)
	if b.Internal {
		return "it answers " + where + ", and nowhere else, as it is internal"
	}
	if b.HostAddress.IsLoopback() {
		return fmt.Sprintf("it answers at %s on this host, and %s", b.HostAddress, where)
	}
	return fmt.Sprintf("it answers at %s for whoever reaches this address of the host, and %s", b.HostAddress, where)
}

// few names the first of many.
func few(all []string) string {
	const most = 3
	if len(all) > most {
		all = append(all[:most:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(all, ", ")
}

func warning(reason, format string, args ...any) balancerplan.Notice {
	return balancerplan.Notice{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// publish writes the entry of a Service's status.
func (r *reconciler) publish(ctx context.Context, service *corev1.Service, found *outcome) error {
	if found.keep {
		return nil
	}
	var entries []corev1.LoadBalancerIngress
	if found.entry != nil {
		entries = []corev1.LoadBalancerIngress{*found.entry}
	}
	if equality.Semantic.DeepEqual(service.Status.LoadBalancer.Ingress, entries) {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = entries
	if err := r.cluster.Status().Patch(ctx, service, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("publishing the address of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}
