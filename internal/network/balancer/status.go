// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
)

// Status is what the process of the load balancers says of each.
type Status struct {
	Balancers []ServiceStatus `json:"balancers"`
}

// ServiceStatus is that of the balancer of one Service.
type ServiceStatus struct {
	Cluster   string           `json:"cluster"`
	Namespace string           `json:"namespace"`
	Service   string           `json:"service"`
	UID       string           `json:"uid"`
	Listeners []ListenerStatus `json:"listeners"`
}

// ListenerStatus is one port's.
type ListenerStatus struct {
	Protocol loadbalancer.Protocol `json:"protocol"`
	Port     uint16                `json:"port"`
	// VPC and Host are the two places where it listens. An internal balancer has no Host.
	VPC     PlaceStatus    `json:"vpc"`
	Host    PlaceStatus    `json:"host,omitzero"`
	Targets []TargetStatus `json:"targets"`
}

// PlaceStatus says whether a port is open.
type PlaceStatus struct {
	Open bool `json:"open"`
	// Code is one of the codes below, and Message says why it is not open.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Why a port is not open.
const (
	PortInUse          = "PortInUse"
	PermissionDenied   = "PermissionDenied"
	AddressUnavailable = "AddressUnavailable"
	ListenFailed       = "ListenFailed"
)

// TargetStatus is one target's.
type TargetStatus struct {
	Address netip.AddrPort `json:"address"`
	State   string         `json:"state"`
	// Reason says why it is unhealthy.
	Reason string `json:"reason,omitempty"`
}

// The states of targets.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy"
	Draining  = "draining"
)

// Status says how all balancers are.
func (s *Server) Status() Status {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := Status{Balancers: []ServiceStatus{}}
	for _, f := range s.fronts {
		one := ServiceStatus{
			Cluster: f.owner.cluster, Namespace: f.owner.namespace, Service: f.owner.service, UID: f.balancer.UID, Listeners: []ListenerStatus{},
		}
		for key, p := range f.ports {
			one.Listeners = append(one.Listeners, ListenerStatus{
				Protocol: key.protocol, Port: key.number, VPC: p.placeStatus(inVPC), Host: p.placeStatus(onHost), Targets: p.targets.status(),
			})
		}
		slices.SortFunc(one.Listeners, func(a, b ListenerStatus) int {
			if a.Port != b.Port {
				return int(a.Port) - int(b.Port)
			}
			return strings.Compare(string(a.Protocol), string(b.Protocol))
		})
		all.Balancers = append(all.Balancers, one)
	}
	slices.SortFunc(all.Balancers, func(a, b ServiceStatus) int { return strings.Compare(a.Cluster+"/"+a.UID, b.Cluster+"/"+b.UID) })
	return all
}

func (p *port) placeStatus(at place) PlaceStatus {
	l := p.places[at]
	if l == nil {
		return PlaceStatus{}
	}
	if l.err == nil {
		return PlaceStatus{Open: true}
	}
	code := ListenFailed
	switch {
	case errors.Is(l.err, unix.EADDRINUSE):
		code = PortInUse
	case errors.Is(l.err, unix.EACCES) || errors.Is(l.err, unix.EPERM):
		code = PermissionDenied
	case errors.Is(l.err, unix.EADDRNOTAVAIL):
		code = AddressUnavailable
	}
	return PlaceStatus{Code: code, Message: l.err.Error()}
}

// serveStatus answers at the socket until the context ends.
func (s *Server) serveStatus(ctx context.Context) error {
	listener, err := socketdir.ListenPrivate(ctx, s.config.Socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status()) // a client that went away asks again
	})
	mux.Handle("GET /metrics", httpserve.Metrics(s.metrics.registry, s.config.Log))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the socket of the load balancers: %w", err)
	}
	return nil
}

// maxStatus is how many bytes a status may have.
const maxStatus = 64 << 20

// AskStatus asks the process that answers at a socket.
func AskStatus(ctx context.Context, socket string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://balancer/status", nil)
	if err != nil {
		return Status{}, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Status{}, fmt.Errorf("asking the load balancers for their status: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var status Status
	if err := json.NewDecoder(io.LimitReader(response.Body, maxStatus)).Decode(&status); err != nil {
		return Status{}, fmt.Errorf("reading the status of the load balancers: %w", err)
	}
	return status, nil
}
