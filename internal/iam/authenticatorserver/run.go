// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"cmp"
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

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/platform/leaderlease"
)

// Describe looks up instances by their ids. An instance that does not exist is not in the answer.
type Describe func(ctx context.Context, ids []string) (map[string]tokenverify.Instance, error)

// Config is what an authenticator is started with.
type Config struct {
	Kubeconfig string
	File       authenticatorconfig.Configuration
	Logger     *slog.Logger
	// Instances makes the way to look up instances, if the file has a section ec2. Each call of EC2 is told to onCall.
	Instances func(ctx context.Context, from authenticatorconfig.EC2, onCall func(), logger *slog.Logger) (Describe, error)
	// patience is how long the cluster may take to give the authenticator its rights, as both may start at once;
	// rightsTime if 0.
	patience time.Duration
	// listening is told the addresses, if not nil.
	listening func(*authenticator.Server)
}

// authenticatorParts are the parts of a running authenticator.
type authenticatorParts struct {
	Config
	registry *prometheus.Registry
	metrics  *authenticator.Metrics
	sources  *authenticator.Sources
	verifier tokenverify.Verifier
	client   *keyservice.Client   // nil unless the backend is muster's
	cluster  kubernetes.Interface // nil if no cluster is asked
	own      *tokenverify.Own
	main     *authenticator.Authenticator
	// recordMode is nil if nothing is read from the cluster; from are the sources that are.
	recordMode func(context.Context) error
	from       []cache.ListerWatcher
	recorded   chan struct{} // closed when the mode is, and mappings may be read
	// background runs until the end.
	background []func(context.Context)
	cleanup    []func()
}

// Run answers until ctx is done.
func Run(ctx context.Context, c Config) error {
	if c.patience == 0 {
		c.patience = rightsTime
	}
	p := &authenticatorParts{Config: c, registry: prometheus.NewRegistry(), recorded: make(chan struct{})}
	defer func() {
		for _, f := range p.cleanup {
			f()
		}
	}()
	if err := p.assemble(ctx); err != nil {
		return err
	}
	server, err := authenticator.Listen(ctx, authenticator.ServerConfig{
		Address: c.File.Server.BindAddress, Certificate: c.File.Server.Certificate, Key: c.File.Server.Key, ClientCA: c.File.Server.ClientCA,
		Health: healthAddress(c.File), Metrics: c.File.Server.MetricsAddress, MetricsClientCA: c.File.Server.MetricsClientCA, Client: p.cluster,
		Handler: p.main, Gatherer: p.registry, Ready: p.ready, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	if c.listening != nil {
		c.listening(server)
	}
	c.Logger.Info("authenticator starts", "cluster_id", c.File.ClusterID, "backend", c.File.Backend, "mode", c.File.Mapping.Mode,
		"address", server.Address().String(), "client_certificates", c.File.Server.ClientCA != "")
	for _, t := range c.File.Mapping.TrustedSessionNames {
		c.Logger.Info("sessions of a role become the nodes that they are named after", "role", t.Role, "names", t.Names)
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
	c.Logger.Info("authenticator ended")
	return err
}

func healthAddress(file authenticatorconfig.Configuration) string {
	if file.Server.HealthAddress == authenticatorconfig.None {
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
	hosts, err := p.File.Hosts()
	if err != nil {
		return err
	}
	config := authenticator.Config{
		ClusterID: p.File.ClusterID, Hosts: hosts, Verifier: p.verifier, Table: p.sources.Table,
		Remember: p.File.Cache.TTL.Value(), RememberNo: p.File.Cache.NegativeTTL.Value(), Most: p.File.Cache.Size, MostNo: p.File.Cache.NegativeSize,
		Scrubbed: p.File.ScrubbedAccounts, Audiences: p.File.Server.Audiences, Metrics: p.metrics, Logger: p.Logger, Mapped: p.sources.Learn,
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
				p.own.Forget(c) // first: a request between the two must not get an answer that is not true any more
				p.main.Forget(c)
			})
		})
	}
	return nil
}

// reportRefusals reports to the identity service in the background. Reports that it has no time for are left out: a
// refused client comes again.
func (p *authenticatorParts) reportRefusals() func(keyservice.Refused) {
	waiting := make(chan keyservice.Refused, 64)
	p.background = append(p.background, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case refused := <-waiting:
				if err := p.client.Refused(ctx, refused); err != nil {
					p.Logger.Debug("a refusal was not reported", "error", err)
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
	config := authenticator.SourcesConfig{Options: p.File.Options(), File: p.File.Mapping.File, Metrics: p.metrics, Logger: p.Logger}
	if !p.File.Mapping.FileOnly {
		cluster, err := clusterConnection(p.Kubeconfig)
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(cluster)
		if err != nil {
			return fmt.Errorf("making a client of the cluster: %w", err)
		}
		p.cluster = client
		p.recordMode = func(ctx context.Context) error {
			return authenticator.RecordMode(ctx, client, p.File.Mapping.Namespace, identity.Mode(p.File.Mapping.Mode))
		}
		tenure := leaderlease.NewTenure(time.Now, p.Logger)
		status, err := authenticator.StatusOf(tenure.Fence(cluster))
		if err != nil {
			return err
		}
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("naming this replica: %w", err)
		}
		leading := leading{
			cluster: cluster, namespace: p.File.Mapping.Namespace, identity: host + "_" + uuid.NewString(),
			policies: p.File.AccessPolicies.Enabled, alone: p.File.AccessPolicies.Alone, patience: p.patience, tenure: tenure, logger: p.Logger,
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
		// All of them in every mode: a principal that is refused because the mode does not ask a source that names it
		// is told so.
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
	gate := tokenverify.GateConfig{
		Known: p.File.Limits.Known, Unknown: p.File.Limits.Unknown, PerKey: p.File.Limits.PerKey, Queue: p.File.Limits.Queue, Wait: p.File.Limits.Wait.Value(),
		Remember: p.File.Cache.RememberKeys, Busy: p.metrics.Busy,
	}
	if p.File.Backend == authenticatorconfig.BackendMuster {
		// The account answers in less than a millisecond, forged tokens too: those of a known key do not keep its
		// owner's out.
		gate.QueuePerKey = max(1, p.File.Limits.Queue/2)
		var err error
		if p.client, err = keyservice.NewClient(keyservice.ClientConfig{
			Socket: p.File.Muster.Socket, Address: p.File.Muster.Address, Credential: keyservice.Credential{CA: p.File.Muster.CA, File: p.File.Muster.Credential},
			StaleAfter: p.File.Muster.StaleAfter.Value(), Logger: p.Logger,
		}); err != nil {
			return err
		}
		p.cleanup = append(p.cleanup, p.client.Close)
		p.own, err = tokenverify.NewOwn(tokenverify.OwnConfig{ClusterID: p.File.ClusterID, Account: p.client, Live: p.client.Live, Gate: gate})
		p.verifier = p.own
		return err
	}
	config := tokenverify.RemoteConfig{
		ClusterID: p.File.ClusterID, Endpoints: p.File.STS.Endpoints, Timeout: p.File.STS.Timeout.Value(), Connections: p.File.STS.Connections,
		HTTP2: p.File.STS.HTTP2, Gate: gate, Observe: p.metrics.Observed, Logger: p.Logger,
	}
	if p.File.STS.CA != "" {
		raw, err := os.ReadFile(p.File.STS.CA)
		if err != nil {
			return fmt.Errorf("reading sts.ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return fmt.Errorf("sts.ca: %s holds no certificate in PEM", p.File.STS.CA)
		}
	}
	if p.File.STS.Proxy != "" {
		var err error
		if config.Proxy, err = url.Parse(p.File.STS.Proxy); err != nil {
			return errors.New("sts.proxy is not a URL") // it may have a password in it
		}
	}
	remote, err := tokenverify.NewRemote(config)
	if err != nil {
		return err
	}
	p.cleanup = append(p.cleanup, remote.Close)
	p.verifier = remote
	if p.File.EC2 == nil {
		return nil
	}
	return p.assembleInstances(ctx)
}

func (p *authenticatorParts) assembleInstances(ctx context.Context) error {
	describe, err := p.Instances(ctx, *p.File.EC2, p.metrics.DescribedInstances, p.Logger)
	if err != nil {
		return err
	}
	config := tokenverify.InstancesConfig{
		Needed: p.sources.InstanceMatters,
		MaxAge: p.File.Cache.InstanceMaxAge.Value(), Most: p.File.Cache.MaxInstances, Roles: map[string]string{},
		Describe: describe,
	}
	for _, profile := range p.File.EC2.InstanceProfiles {
		config.Roles[profile.ARN] = profile.Role
	}
	p.verifier, err = tokenverify.NewInstances(p.verifier, config)
	return err
}

// ready reports whether requests can be answered.
func (p *authenticatorParts) ready() error {
	if err := p.sources.Ready(); err != nil {
		return err
	}
	if p.client != nil && !p.client.Live() {
		return fmt.Errorf("the identity service does not answer on %s", cmp.Or(p.File.Muster.Socket, p.File.Muster.Address))
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
