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
	"os"
	"time"
)

// serveEgress answers API servers on the unix socket: HTTP CONNECT, as their EgressSelectorConfiguration with
// proxyProtocol HTTPConnect speaks it (k8s.io/apiserver/pkg/server/egressselector), and GET /readyz.
func (r *Relay) serveEgress(ctx context.Context, listener net.Listener, namespace *os.File) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodConnect {
				mux.ServeHTTP(w, request)
				return
			}
			r.connect(ctx, w, request, namespace)
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
func (r *Relay) connect(ctx context.Context, w http.ResponseWriter, request *http.Request, namespace *os.File) {
	target, err := r.admit(request.RequestURI)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	peer, err := r.dialVPC(dialing, namespace, target)
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

// admit decides where an API server may connect to: machines and pods, by address. Names are not resolved, and the VPC's own
// addresses are refused since they lead back to the API server.
func (r *Relay) admit(hostPort string) (netip.AddrPort, error) {
	target, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("CONNECT needs an address and a port, not %q", hostPort)
	}
	network, address := r.config.Network.cidr, target.Addr()
	switch {
	case target.Port() == 0:
	case address == Router(network), address == ENI(network), address == Services(network):
	case network.Contains(address), r.config.PodCIDR.Contains(address):
		return target, nil
	}
	return netip.AddrPort{}, fmt.Errorf("%s is neither a machine in %s nor a pod in %s", target, network, r.config.PodCIDR)
}
