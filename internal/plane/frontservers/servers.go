// SPDX-License-Identifier: Apache-2.0

// Package frontservers is the file that tells a front of a plane (package planefront) which API servers stand behind it.
package frontservers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

const (
	// maxServers is how many servers a plane has at most: two replicas, and the newcomers that replace them.
	maxServers = 8
	// MaxSize is the size of a file of servers, in bytes.
	MaxSize = 16 << 10
)

// Server is a kube-apiserver behind a front.
type Server struct {
	// Address is where the server listens, on loopback.
	Address netip.AddrPort `json:"address"`
	// Draining servers get no new connections.
	Draining bool `json:"draining,omitempty"`
}

// file is the form of the file of servers.
type file struct {
	Servers []Server `json:"servers"`
}

// Marshal renders the file of servers. It checks nothing: a plan of a plane has no ports yet.
func Marshal(servers []Server) []byte {
	raw, err := json.Marshal(file{servers})
	if err != nil {
		panic("frontservers: addresses always marshal: " + err.Error())
	}
	return append(raw, '\n')
}

// Read reads what [Marshal] rendered, and checks it. It is strict: a front that cannot read the file goes on with the servers that it
// knows.
func Read(raw []byte) ([]Server, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("the file of servers has more than %d bytes", MaxSize)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var read file
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("reading the file of servers: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file of servers goes on after its end")
	}
	return read.Servers, check(read.Servers)
}

func check(servers []Server) error {
	if len(servers) > maxServers {
		return fmt.Errorf("servers has %d entries: a front has at most %d", len(servers), maxServers)
	}
	var errs []error
	for i, s := range servers {
		if !s.Address.Addr().IsLoopback() || s.Address.Port() == 0 {
			errs = append(errs, fmt.Errorf("servers[%d].address is %s: it must be a port on loopback", i, s.Address))
		}
		if slices.ContainsFunc(servers[:i], func(other Server) bool { return other.Address == s.Address }) {
			errs = append(errs, fmt.Errorf("servers[%d].address is %s, as of a server before it", i, s.Address))
		}
	}
	return errors.Join(errs...)
}
