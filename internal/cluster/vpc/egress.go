// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// kubeletPort is where kubelets listen.
const kubeletPort = 10250

// serveEgress answers the API server on the unix socket: HTTP CONNECT, as their EgressSelectorConfiguration with
// proxyProtocol HTTPConnect speaks it (k8s.io/apiserver/pkg/server/egressselector), and GET /readyz.
func (d *door) serveEgress(ctx context.Context, listener net.Listener) error {
	ready := readiness()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodConnect {
				ready.ServeHTTP(w, request)
				return
			}
			d.connect(ctx, w, request)
		}),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    4 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving egress socket: %w", err)
	}
	return nil
}

// connect handles one CONNECT request and then relays until either side ends.
func (d *door) connect(ctx context.Context, w http.ResponseWriter, request *http.Request) {
	target, err := d.admit(request.RequestURI)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !d.takeCall() {
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer d.giveCall()
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	peer, err := dialVPC(dialing, d.namespace, d.Addresses[0], target)
	cancel()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		_ = peer.Close()
		http.Error(w, "this connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	connection, buffered, err := hijacker.Hijack()
	if err != nil {
		_ = peer.Close()
		return
	}
	// What the client sent ahead of the answer is in the reader's buffer, which is small and bounded.
	early := make([]byte, buffered.Reader.Buffered())
	_, err = io.ReadFull(buffered, early)
	if err == nil {
		_, err = io.WriteString(connection, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err == nil && len(early) > 0 {
		_, err = peer.Write(early)
	}
	if err != nil {
		_ = connection.Close()
		_ = peer.Close()
		return
	}
	splice(ctx, connection, peer)
}

// maxCalls of the API server's connections leave a quarter to machines: whoever may follow the log of one pod has the API server connect as often as he asks.
const maxCalls = maxConnections / 4 * 3

// takeCall takes a place for a connection of the API server.
func (d *door) takeCall() bool {
	if d.calls.Add(1) > maxCalls {
		d.calls.Add(-1)
		return false
	}
	select {
	case d.slots <- struct{}{}:
		return true
	default:
		d.calls.Add(-1)
		return false
	}
}

// giveCall gives it back.
func (d *door) giveCall() {
	<-d.slots
	d.calls.Add(-1)
}

// admit decides where an API server may connect to: the machines that were launched for its cluster and the cluster's pods, by address, so that
// it is worth nothing at another cluster's machines. Of a host that joined by itself nobody knows which cluster it is in: it is reached at
// its kubelet's port, and the kubelet asks for a certificate. Names are not resolved, and the VPC's own addresses are refused since they
// lead back to API servers.
func (d *door) admit(hostPort string) (netip.AddrPort, error) {
	target, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("CONNECT needs an address and a port, not %q", hostPort)
	}
	reachable, err := d.network.reaches(d.Endpoint, d.owners, d.relay.config.Machines, target, true)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !reachable {
		return netip.AddrPort{}, fmt.Errorf("%s is neither a machine nor a pod of cluster %s: machines are in %s, pods in %s", target, d.Cluster, d.network.cidr, d.PodCIDR)
	}
	return target, nil
}

// reaches reports whether a target is a machine or a pod of a machine of the cluster that an endpoint is of, or, if strangers may be meant, the kubelet's port
// of a machine of which nobody knows the cluster.
func (n *Network) reaches(e Endpoint, owners *owners, machines Machines, target netip.AddrPort, strangers bool) (bool, error) {
	address := target.Addr()
	switch {
	case target.Port() == 0:
	case n.cidr.Contains(address):
		if n.free(address) != nil {
			break
		}
		cluster, known, err := machines.Cluster(owners.of(address))
		if err != nil {
			return false, fmt.Errorf("finding the machine with the address %s: %w", address, err)
		}
		return known && cluster == e.Cluster || strangers && !known && target.Port() == kubeletPort, nil
	case e.PodCIDR.Contains(address):
		cluster, known, err := machines.Cluster(owners.of(address))
		if err != nil {
			return false, fmt.Errorf("finding the machine of the pod with the address %s: %w", address, err)
		}
		return !known || cluster == e.Cluster, nil
	}
	return false, nil //nolint:nilerr // an address that no machine can have
}
