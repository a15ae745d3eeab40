// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

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
	CA []byte
	// PodReader is the file with the certificate and key of a user that may list and watch pods. It is read once a
	// machine takes pods, and again when it is replaced.
	PodReader string
	Log       *slog.Logger
}

// Simulator runs a kubelet without containers for each simulated machine.
type Simulator struct {
	config      SimulatorConfig
	authorities *x509.CertPool
	// anonymous is the transport that nodes share until each has a certificate.
	anonymous *http.Transport
	// joining bounds how many nodes join at once: more would only wait for each other at the API server.
	joining chan struct{}
	known   knownVersion
	// boots are the boots of the machines that run, by id.
	boots map[string]int64
	// pods of machines that take any; nil before there is such a machine.
	pods *pods
	// settled is when the directory of machines had last changed as it was read, if nothing in it waits to be complete.
	settled time.Time
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
	if config.Log == nil || config.Cluster == "" || config.PodReader == "" {
		return nil, errors.New("the simulator needs a log, the name of its cluster and a certificate to read pods with")
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(config.CA) {
		return nil, errors.New("the API server's certificate authority has no certificate in PEM")
	}
	s := &Simulator{config: config, authorities: authorities, joining: make(chan struct{}, maxJoining), known: knownVersion{turn: make(chan struct{}, 1)}, boots: map[string]int64{}}
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
		records, news, err := s.records(running)
		if err != nil {
			s.config.Log.Error("cannot list machines", "error", err)
		}
		for id, record := range records {
			if record == nil {
				continue // it runs already
			}
			if record.SimulatePods && s.pods == nil {
				s.pods = newPods(s)
				nodes.Go(func() {
					if err := s.pods.run(ctx); err != nil {
						s.config.Log.Error("no pods are run", "error", err)
					}
				})
			}
			machineCtx, cancel := context.WithCancel(ctx)
			running[id], s.boots[id] = cancel, bootOf(s.config.State.Machine(id))
			nodes.Go(func() { s.runNode(machineCtx, *record) })
		}
		if news && err == nil {
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
