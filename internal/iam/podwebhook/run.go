// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/iam/podpatch"
	"muster.dev/muster/internal/iam/podwebhookcert"
	"muster.dev/muster/internal/iam/podwebhookconfig"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/metricsgate"
	"muster.dev/muster/internal/platform/watchfile"
	"muster.dev/muster/internal/platform/watchretry"
)

const (
	// component is the source of Events.
	component = "pod-identity-webhook"
	grace     = 2 * time.Second
	// maxFile is how large the file of associations and that of authorities may be.
	maxFile = 4 << 20
	// maxTrust is how large the authorities may be that go into an annotation of each pod: annotations have 256 KiB at
	// most.
	maxTrust = 64 << 10
	filePoll = 10 * time.Second
)

// Config is what the webhook is started with.
type Config struct {
	Kubeconfig string // empty: the cluster that this pod is in
	File       podwebhookconfig.Configuration
	Logger     *slog.Logger
}

// Run answers until the context ends.
func Run(ctx context.Context, c Config) error {
	read := rest.InClusterConfig
	if c.Kubeconfig != "" {
		read = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", c.Kubeconfig) }
	}
	connection, err := read()
	if err != nil {
		return fmt.Errorf("reading the way to the cluster: %w", err)
	}
	connection.UserAgent, connection.QPS = component, -1 // questions have a limit of their own
	watchretry.Wrap(connection)
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client of the cluster: %w", err)
	}
	return run(ctx, c, client)
}

func run(ctx context.Context, c Config, client kubernetes.Interface) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m, err := newMutator(c, client, newMetrics(registry))
	if err != nil {
		return err
	}
	var keeper *podwebhookcert.Keeper
	if a := c.File.Server.Authority; a != nil {
		keeper = &podwebhookcert.Keeper{Client: client, Config: *a, Path: c.File.Server.Certificate, Logger: c.Logger}
		if keeper.First(ctx) != nil { // it was told to stop
			return nil
		}
	}
	ready := func() error {
		if !m.accounts.synced() {
			return errors.New("the service accounts of the cluster have not been read yet")
		}
		return m.associations.ready()
	}
	ports := httpserve.Set{Logger: c.Logger, Grace: grace}
	defer ports.Close()
	if _, err := serve(ctx, &ports, c, m, ready); err != nil {
		return err
	}
	if _, err := serveMetrics(ctx, &ports, c, client, registry); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { m.accounts.run(running) })
	if keeper != nil {
		group.Go(func() { keeper.Run(running) })
	}
	if m.associations != nil {
		m.associations.look()
		group.Go(func() { m.associations.file.Run(running, m.associations.look) })
	}
	group.Go(func() {
		if !cache.WaitForCacheSync(running.Done(), m.accounts.synced) {
			return
		}
		(&missed{client: client, mutator: m, log: c.Logger}).run(running)
	})
	c.Logger.Info("pod identity webhook starts", "address", c.File.Server.BindAddress, "region", c.File.Region, "grace_period", c.File.Grace())
	return ports.Serve(running)
}

// serve opens the ports of reviews and of health, and returns where health is.
func serve(ctx context.Context, ports *httpserve.Set, c Config, m *mutator, ready func() error) (net.Addr, error) {
	s := c.File.Server
	files, err := httpserve.ReadFiles("AdmissionReviews", s.Certificate, s.Key, s.ClientCA, c.Logger)
	if err != nil {
		return nil, err
	}
	var listener, health net.Listener
	if listener, err = ports.Open(ctx, "AdmissionReviews", s.BindAddress); err != nil {
		return nil, err
	}
	if health, err = ports.Open(ctx, "health", s.Health); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mutate", m)
	if writer := c.File.ContainerCredentials.Writer; writer != "" {
		mux.Handle("PUT "+podwebhookconfig.AssociationsPath, httpserve.Only(writer, m.associations))
	}
	ports.Handle(tls.NewListener(listener, files.Config()), mux)
	plain := http.NewServeMux()
	httpserve.Health(plain, ready)
	ports.Handle(health, plain)
	return health.Addr(), nil
}

// serveMetrics opens the port of metrics, nil if there is none, for those who may get them: every local user reaches a
// loopback address, and every pod another one.
func serveMetrics(ctx context.Context, ports *httpserve.Set, c Config, client kubernetes.Interface, registry *prometheus.Registry) (net.Addr, error) {
	s := c.File.Server
	if s.Metrics == "" {
		return nil, nil //nolint:nilnil // no port is not an error
	}
	gate, err := metricsgate.New(metricsgate.Config{Client: client, Logger: c.Logger, Next: httpserve.Metrics(registry, c.Logger)})
	if err != nil {
		return nil, err
	}
	files, err := httpserve.ReadFiles("metrics", s.Certificate, s.Key, s.MetricsClientCA, c.Logger)
	if err != nil {
		return nil, err
	}
	listener, err := ports.Open(ctx, "metrics", s.Metrics)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", gate)
	ports.Handle(tls.NewListener(listener, files.ConfigIfGiven()), mux)
	return listener.Addr(), nil
}

func newMutator(c Config, client kubernetes.Interface, metrics *metrics) (*mutator, error) {
	f := c.File
	rules := podpatch.Rules{
		Defaults:  podpatch.Defaults{Domain: f.AnnotationDomain, Audience: f.WebIdentity.Audience, RegionalSTS: f.WebIdentity.RegionalEndpoints, Expiration: f.WebIdentity.ExpirationSeconds},
		MountPath: f.WebIdentity.MountPath, Region: f.Region,
		Container: podpatch.ContainerCredentials{
			FullURI: f.ContainerCredentials.FullURI, Audience: f.ContainerCredentials.Audience, MountPath: f.ContainerCredentials.MountPath,
			Volume: f.ContainerCredentials.Volume, TokenPath: f.ContainerCredentials.TokenPath,
		},
		Account: podpatch.Account{EndpointURL: f.Account.EndpointURL}, Jitter: rand.Int64N,
	}
	if f.ComposeRole != nil {
		rules.Partition, rules.AccountID = f.ComposeRole.Partition, f.ComposeRole.AccountID
	}
	if f.Account.TrustFile != "" {
		trust, err := readTrust(f.Account.TrustFile)
		if err != nil {
			return nil, err
		}
		rules.Account.Trust = trust
	}
	rules = rules.Complete()
	m := &mutator{rules: rules, accounts: newAccounts(client, f.ConfigMapNamespace, rules.Defaults, c.Logger), grace: f.Grace(), metrics: metrics, log: c.Logger}
	if f.ContainerCredentials.File != "" {
		m.associations = &associations{log: c.Logger, own: f.ContainerCredentials.Writer != "", file: watchfile.File{
			Path: f.ContainerCredentials.File, What: "file of pod identity associations", Poll: filePoll, MaxSize: maxFile, Logger: c.Logger,
		}}
	}
	return m, nil
}

// readTrust reads the authorities of the account. A file without a certificate is an error: pods would trust nobody.
func readTrust(path string) (string, error) {
	raw, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the authorities of the account: %w", err)
	case len(raw) > maxTrust:
		return "", fmt.Errorf("%s has %d bytes: %d fit into an annotation of each pod", path, len(raw), maxTrust)
	case !x509.NewCertPool().AppendCertsFromPEM(raw):
		return "", fmt.Errorf("%s has no certificate in PEM", path)
	}
	return string(raw), nil
}
