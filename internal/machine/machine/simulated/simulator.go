// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/statedir"
)

// SimulatorConfig names the machine records to read and the cluster that their nodes join.
type SimulatorConfig struct {
	State statedir.Dir
	// Cluster is the name of the cluster: machines of others, and their tokens, are left alone.
	Cluster string
	// APIServer is the API server's URL on the host. The one in the user data is that of the VPC, where this process is
	// not.
	APIServer string
	// CA is the authority of the API server's certificate, as PEM.
	CA  []byte
	Log *slog.Logger
}

// Simulator runs a kubelet without pods for each simulated machine.
type Simulator struct {
	config      SimulatorConfig
	authorities *x509.CertPool
	// anonymous is the transport that nodes share until each has a certificate.
	anonymous *http.Transport
	// joining bounds how many nodes join at once: more would only wait for each other at the API server.
	joining chan struct{}
	known   knownVersion
}

const (
	// lookInterval is how often the records are looked at. A watch would need an inotify instance, which are few.
	lookInterval = 200 * time.Millisecond
	maxJoining   = 128
)

// NewSimulator checks the configuration.
func NewSimulator(config SimulatorConfig) (*Simulator, error) {
	server, err := url.Parse(config.APIServer)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return nil, fmt.Errorf("API server %q is not a URL like https://127.0.0.1:6443", config.APIServer)
	}
	if config.Log == nil || config.Cluster == "" {
		return nil, errors.New("the simulator needs a log and the name of its cluster")
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(config.CA) {
		return nil, errors.New("the API server's certificate authority has no certificate in PEM")
	}
	s := &Simulator{config: config, authorities: authorities, joining: make(chan struct{}, maxJoining), known: knownVersion{turn: make(chan struct{}, 1)}}
	s.anonymous = s.transport(nil)
	return s, nil
}

// transport makes a transport to the API server with the certificate that the function returns at each new connection.
func (s *Simulator) transport(certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		// A connection that is silently dead is found by pings: an API server that was killed says no goodbye.
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		Protocols:           protocols,
		TLSClientConfig:     &tls.Config{RootCAs: s.authorities, MinVersion: tls.VersionTLS12, GetClientCertificate: certificate},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 1,
	}
}

// Run simulates until the context ends. Nodes that joined in an earlier life go on with the certificates they have.
func (s *Simulator) Run(ctx context.Context) error {
	var nodes sync.WaitGroup
	defer nodes.Wait()
	running := map[string]context.CancelFunc{}
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	s.config.Log.Info("simulator runs", "machines", s.config.State.Machines(), "api_server", s.config.APIServer)
	for {
		records, err := s.records(running)
		if err != nil {
			s.config.Log.Error("cannot list machines", "error", err)
		}
		for id, record := range records {
			if record == nil {
				continue // it runs already
			}
			machineCtx, cancel := context.WithCancel(ctx)
			running[id] = cancel
			nodes.Go(func() { s.runNode(machineCtx, *record) })
		}
		if err == nil {
			for id, cancel := range running {
				if _, ok := records[id]; !ok {
					cancel()
					delete(running, id)
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// records lists the simulated machines, with the records of those that do not run yet.
func (s *Simulator) records(running map[string]context.CancelFunc) (map[string]*machine.Record, error) {
	entries, err := os.ReadDir(s.config.State.Machines())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]*machine.Record{}
	for _, entry := range entries {
		id := entry.Name()
		if machine.ValidateID(id) != nil {
			continue
		}
		// The user data is written last, so a machine that has it is complete; one that is being removed loses it
		// before its record.
		if _, err := os.Lstat(filepath.Join(s.config.State.Machine(id), machine.UserDataFile)); err != nil {
			continue
		}
		if isStopped(s.config.State.Machine(id)) {
			continue
		}
		if _, ok := running[id]; ok {
			found[id] = nil
			continue
		}
		record, err := machine.ReadRecord(filepath.Join(s.config.State.Machine(id), machine.RecordFile))
		if err != nil || record.Provider != providerName || record.Cluster != s.config.Cluster { // another's, or being removed
			continue
		}
		found[id] = &record
	}
	return found, nil
}
