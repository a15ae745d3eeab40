// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"muster.dev/muster/internal/authenticator"
	"muster.dev/muster/internal/authfile"
	"muster.dev/muster/internal/facts/ec2"
	"muster.dev/muster/internal/identity"
	"muster.dev/muster/internal/keyservice"
	"muster.dev/muster/internal/sts"
)

// authenticatorConfig is what an authenticator is started with.
type authenticatorConfig struct {
	kubeconfig string
	file       authfile.Configuration
	logger     *slog.Logger
	// patience is how long the cluster may take to give the authenticator its rights, as both may start at once; rightsTime if 0.
	patience time.Duration
	// listening is told the addresses, if not nil.
	listening func(*authenticator.Server)
}

// authenticatorParts are the parts of a running authenticator.
type authenticatorParts struct {
	authenticatorConfig
	registry *prometheus.Registry
	metrics  *authenticator.Metrics
	sources  *authenticator.Sources
	verifier sts.Verifier
	client   *keyservice.Client // nil unless the backend is muster's
	own      *sts.Own
	main     *authenticator.Authenticator
	// recordMode is nil if nothing is read from the cluster; from are the sources that are.
	recordMode func(context.Context) error
	from       []cache.ListerWatcher
	recorded   chan struct{} // closed when the mode is, and mappings may be read
	// background runs until the end.
	background []func(context.Context)
	cleanup    []func()
}

// runAuthenticator answers until ctx is done.
func runAuthenticator(ctx context.Context, c authenticatorConfig) error {
	if c.patience == 0 {
		c.patience = rightsTime
	}
	p := &authenticatorParts{authenticatorConfig: c, registry: prometheus.NewRegistry(), recorded: make(chan struct{})}
	defer func() {
		for _, f := range p.cleanup {
			f()
		}
	}()
	if err := p.assemble(ctx); err != nil {
		return err
	}
	server, err := authenticator.Listen(ctx, authenticator.ServerConfig{
		Address: c.file.Server.BindAddress, Certificate: c.file.Server.Certificate, Key: c.file.Server.Key, ClientCA: c.file.Server.ClientCA,
		Health: healthAddress(c.file), Handler: p.main, Gatherer: p.registry, Ready: p.ready, Logger: c.logger,
	})
	if err != nil {
		return err
	}
	if c.listening != nil {
		c.listening(server)
	}
	c.logger.Info("authenticator starts", "cluster_id", c.file.ClusterID, "backend", c.file.Backend, "mode", c.file.Mapping.Mode,
		"address", server.Address().String(), "client_certificates", c.file.Server.ClientCA != "")
	for _, t := range c.file.Mapping.TrustedSessionNames {
		c.logger.Info("sessions of a role become the nodes that they are named after", "role", t.Role, "names", t.Names)
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for _, f := range p.background {
		group.Go(func() { f(running) })
	}
	group.Go(func() { p.follow(running, stop) })
	err = server.Serve(running)
	stop(nil)
	group.Wait()
	c.logger.Info("authenticator ended")
	return err
}

func healthAddress(file authfile.Configuration) string {
	if file.Server.HealthAddress == authfile.None {
		return ""
	}
	return file.Server.HealthAddress
}

func (p *authenticatorParts) assemble(ctx context.Context) error {
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.metrics = authenticator.NewMetrics(p.registry)
	if err := p.assembleSources(ctx); err != nil {
		return err
	}
	if err := p.assembleVerifier(ctx); err != nil {
		return err
	}
	hosts, err := p.file.Hosts()
	if err != nil {
		return err
	}
	config := authenticator.Config{
		ClusterID: p.file.ClusterID, Hosts: hosts, Verifier: p.verifier, Table: p.sources.Table,
		Remember: p.file.Cache.TTL.Value(), RememberNo: p.file.Cache.NegativeTTL.Value(), Most: p.file.Cache.Size, MostNo: p.file.Cache.NegativeSize,
		Scrubbed: p.file.ScrubbedAccounts, Audiences: p.file.Server.Audiences, Metrics: p.metrics, Logger: p.logger, Mapped: p.sources.Learn,
	}
	if p.client != nil {
		config.Live = p.client.Live
		config.Refused = p.reportRefusals()
	}
	if p.main, err = authenticator.New(config); err != nil {
		return err
	}
	if p.client != nil {
		p.background = append(p.background, func(ctx context.Context) {
			p.client.Watch(ctx, func(c keyservice.Change) {
				p.own.Forget(c) // first: what is asked between the two must not be answered by what is not true any more
				p.main.Forget(c)
			})
		})
	}
	return nil
}

// reportRefusals reports to the identity service in the background. What it has no time for is left out: who is refused comes again.
func (p *authenticatorParts) reportRefusals() func(keyservice.Refused) {
	waiting := make(chan keyservice.Refused, 64)
	p.background = append(p.background, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case refused := <-waiting:
				if err := p.client.Refused(ctx, refused); err != nil {
					p.logger.Debug("a refusal was not reported", "error", err)
				}
			}
		}
	})
	return func(refused keyservice.Refused) {
		select {
		case waiting <- refused:
		default:
		}
	}
}

// assembleSources prepares the mappings, and records the mode.
func (p *authenticatorParts) assembleSources(ctx context.Context) error {
	config := authenticator.SourcesConfig{Options: p.file.Options(), File: p.file.Mapping.File, Metrics: p.metrics, Logger: p.logger}
	if !p.file.Mapping.FileOnly {
		cluster, err := clusterConnection(p.kubeconfig)
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(cluster)
		if err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		p.recordMode = func(ctx context.Context) error {
			return authenticator.RecordMode(ctx, client, p.file.Mapping.Namespace, identity.Mode(p.file.Mapping.Mode))
		}
		status, err := authenticator.StatusOf(cluster)
		if err != nil {
			return err
		}
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("naming this replica: %w", err)
		}
		leading := leading{
			cluster: cluster, namespace: p.file.Mapping.Namespace, identity: host + "_" + uuid.NewString(),
			policies: p.file.AccessPolicies.Enabled, alone: p.file.AccessPolicies.Alone, patience: p.patience, logger: p.logger,
		}
		leading.status = func(ctx context.Context) error {
			p.sources.KeepStatus(ctx, status)
			return nil
		}
		p.background = append(p.background, func(ctx context.Context) {
			select { // before that it may have no rights in the cluster
			case <-p.recorded:
				leading.keep(ctx)
			case <-ctx.Done():
			}
		})
		// All of them in every mode: who is refused because the mode does not ask a source that names him is told so.
		if config.AccessEntries, err = authenticator.AccessEntries(cluster); err != nil {
			return err
		}
		if config.IdentityMappings, err = authenticator.IdentityMappings(cluster); err != nil {
			return err
		}
		config.AWSAuth = authenticator.AWSAuth(client)
		p.from = []cache.ListerWatcher{config.AccessEntries, config.IdentityMappings, config.AWSAuth}
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		p.cleanup = append(p.cleanup, broadcaster.Shutdown)
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		config.Events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "muster-authenticator"})
	}
	var err error
	p.sources, err = authenticator.NewSources(config)
	return err
}

func (p *authenticatorParts) assembleVerifier(ctx context.Context) error {
	gate := sts.GateConfig{
		Known: p.file.Limits.Known, Unknown: p.file.Limits.Unknown, PerKey: p.file.Limits.PerKey, Queue: p.file.Limits.Queue, Wait: p.file.Limits.Wait.Value(),
		Remember: p.file.Cache.RememberKeys, Busy: p.metrics.Busy,
	}
	if p.file.Backend == authfile.BackendMuster {
		var err error
		if p.client, err = keyservice.NewClient(keyservice.ClientConfig{Socket: p.file.Muster.Socket, StaleAfter: p.file.Muster.StaleAfter.Value(), Logger: p.logger}); err != nil {
			return err
		}
		p.cleanup = append(p.cleanup, p.client.Close)
		p.own, err = sts.NewOwn(sts.OwnConfig{ClusterID: p.file.ClusterID, Keys: p.client, Live: p.client.Live, Gate: gate, Most: p.file.Cache.MaxKeys})
		p.verifier = p.own
		return err
	}
	config := sts.RemoteConfig{
		ClusterID: p.file.ClusterID, Endpoints: p.file.STS.Endpoints, Timeout: p.file.STS.Timeout.Value(), Connections: p.file.STS.Connections,
		HTTP2: p.file.STS.HTTP2, Gate: gate, Observe: p.metrics.Observed, Logger: p.logger,
	}
	if p.file.STS.CA != "" {
		raw, err := os.ReadFile(p.file.STS.CA)
		if err != nil {
			return fmt.Errorf("reading sts.ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return fmt.Errorf("sts.ca: %s holds no certificate in PEM", p.file.STS.CA)
		}
	}
	if p.file.STS.Proxy != "" {
		var err error
		if config.Proxy, err = url.Parse(p.file.STS.Proxy); err != nil {
			return errors.New("sts.proxy is not a URL") // it may have a password in it
		}
	}
	remote, err := sts.NewRemote(config)
	if err != nil {
		return err
	}
	p.cleanup = append(p.cleanup, remote.Close)
	p.verifier = remote
	if p.file.EC2 == nil {
		return nil
	}
	return p.assembleInstances(ctx)
}

func (p *authenticatorParts) assembleInstances(ctx context.Context) error {
	lookup, err := ec2.NewLookup(ctx, ec2.LookupConfig{
		Region: p.file.EC2.Region, Endpoint: p.file.EC2.Endpoint, PerSecond: p.file.EC2.PerSecond, Burst: p.file.EC2.Burst,
		OnCall: p.metrics.DescribedInstances, Logger: p.logger,
	})
	if err != nil {
		return err
	}
	config := sts.InstancesConfig{
		Needed: p.sources.InstanceMatters,
		MaxAge: p.file.Cache.InstanceMaxAge.Value(), Most: p.file.Cache.MaxInstances, Roles: map[string]string{},
		Describe: func(ctx context.Context, ids []string) (map[string]sts.Instance, error) {
			described, err := lookup.Describe(ctx, ids)
			found := make(map[string]sts.Instance, len(described))
			for id, d := range described {
				found[id] = sts.Instance(d)
			}
			return found, err
		},
	}
	for _, profile := range p.file.EC2.InstanceProfiles {
		config.Roles[profile.ARN] = profile.Role
	}
	p.verifier, err = sts.NewInstances(p.verifier, config)
	return err
}

// ready tells whether requests can be answered.
func (p *authenticatorParts) ready() error {
	if err := p.sources.Ready(); err != nil {
		return err
	}
	if p.client != nil && !p.client.Live() {
		return fmt.Errorf("the identity service does not answer on %s", p.file.Muster.Socket)
	}
	return nil
}

// clusterConnection reads a kubeconfig, or finds the cluster that this pod is in.
func clusterConnection(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("finding the cluster that this pod is in (elsewhere, name it with --kubeconfig): %w", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server's flow control knows better how busy it is
	config.UserAgent = "muster-authenticator"
	return config, nil
}
