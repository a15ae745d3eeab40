// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
	"muster.dev/muster/internal/plane/encryptionkey"
	"muster.dev/muster/internal/plane/etcdspace"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

// hosted runs one cluster: its processes and its controllers.
type hosted struct {
	service *Service
	dir     statedir.Cluster
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // it ends when the cluster is removed, before the service does
	end     context.CancelFunc
	ended   chan struct{} // closed when nothing of it runs in this process any more
	reload  chan struct{}
	refused chan nodegroup.Heard // from the identity service to the controllers
	keys    *rotator.Keys

	kubelets   *rotator.Kubelets // their authority
	memoryTold apiservermemory.Notice
	news       planerollout.News // of its API servers
	asked      askedGates
	etcd       etcdspace.Watch

	mu        sync.Mutex
	message   string
	usersNote string // why its components have no users of their own
	// launchesNoMore is true once the cluster is being deleted: no Karpenter runs in its control plane.
	launchesNoMore bool

	followed    followed
	runner      runner.Runner
	specs       component.Config
	logging     *v1alpha1.ClusterEKS    // as the object has it, which starts nothing again; nil until the object was read
	accounts    serviceaccounts.Cluster // once it runs
	securityLog []*auditlog.Splitter    // of each API server
	callers     *deprecationlog.Counter // of deprecated APIs
	reader      client.Reader           // the management plane, as far as it is about this cluster, once the controllers run
}

// newHosted makes a cluster that can be run until the context ends, or the cluster is removed.
func newHosted(ctx context.Context, s *Service, dir statedir.Cluster) *hosted {
	ctx, end := context.WithCancel(ctx)
	h := &hosted{
		ctx: ctx, end: end, ended: make(chan struct{}), service: s, dir: dir, log: s.cfg.Log.With("cluster", dir.Namespace()),
		reload: make(chan struct{}, 1), refused: make(chan nodegroup.Heard, 64),
		keys: rotator.NewKeys(authority.NewStore(dir.PKI())),
	}
	h.kubelets = rotator.NewKubelets(h.keys, h.log)
	return h
}

// run serves the cluster until it ends, a generation for each configuration. A failure to do so is in its status, and
// it tries again.
func (h *hosted) run(account component.Account) {
	defer close(h.ended)
	defer h.end()
	for h.ctx.Err() == nil {
		_ = retry(h.ctx, "starting the cluster", h.say, func(ctx context.Context) error { return h.generation(ctx, account) })
	}
}

// generation serves one configuration, until the context ends or the configuration has changed.
func (h *hosted) generation(ctx context.Context, account component.Account) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	change := h.begin()
	wanted, err := clusterconfig.Read(h.dir.Record())
	if err != nil {
		return err
	}
	specs, err := h.prepare(account, wanted)
	if err != nil {
		return err
	}
	accounts, err := serviceaccounts.NewCluster(specs, h.log)
	if err != nil {
		return err
	}
	supervisor, err := supervise.New(supervise.Config{
		State: account.State, Log: h.log, OwnUsers: h.ownUsers(), Memory: supervise.MemoryGroups(account.State),
		Owns: h.owns,
	})
	if err != nil {
		return err
	}
	plane, err := h.newRollout(specs, supervisor)
	if err != nil {
		return err
	}
	if err := plane.Begin(ctx); err != nil {
		return err
	}
	security, err := h.splitters()
	if err != nil {
		return err
	}
	callers := h.callersOfDeprecated()
	h.mu.Lock()
	h.runner, h.specs, h.reader, h.securityLog, h.callers, h.accounts = supervisor, specs, nil, security, callers, accounts
	h.mu.Unlock()

	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { supervisor.Run(ctx) })
	group.Go(func() { accounts.Run(ctx) })
	group.Go(func() { callers.Run(ctx) })
	group.Go(func() { h.roll(ctx, plane, change) })
	for _, log := range security {
		group.Go(func() { log.Run(ctx) })
	}
	group.Go(func() { h.etcd.Run(ctx, etcdspace.Of(specs), h.service.disk, h.warnOfSpace, h.log) })
	group.Go(func() { h.renew(ctx, specs) })
	group.Go(func() { h.rotateKubelets(ctx, specs) })
	group.Go(func() { h.control(ctx, wanted, specs) })
	group.Go(func() { serveAPIs(ctx, h, specs) })
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case <-h.reload:
		h.log.Info("the configuration changed")
		return nil
	}
}

// newRollout prepares what brings the control plane to a configuration.
func (h *hosted) newRollout(specs component.Config, running runner.Runner) (*planerollout.Rollout, error) {
	wanted, err := component.ClusterPlane(specs)
	if err != nil {
		return nil, err
	}
	return planerollout.New(planerollout.Config{Runner: running, Plane: wanted, Room: h.service.memory, Turns: &h.service.turns, Began: h.news.Began, Log: h.log})
}

// roll brings the control plane to a change, or back.
func (h *hosted) roll(ctx context.Context, plane *planerollout.Rollout, change int) {
	if outcome, err := plane.Run(ctx); err == nil {
		h.settle(change, outcome)
	}
}

// owns reports whether a process is a component of the cluster.
func (h *hosted) owns(process string) bool {
	return strings.HasPrefix(process, component.ProcessPrefix(h.dir.Namespace()))
}

// prepare makes whatever the specs are built from.
func (h *hosted) prepare(account component.Account, wanted clusterconfig.Config) (component.Config, error) {
	specs := component.Config{Account: account, Dir: h.dir, Cluster: *wanted.Cluster}
	err := steps.InOrder(h.log,
		steps.New("directory of keys", func() error { return makeKeysDir(h.dir.PKI()) }),
		steps.New("memory of the host", func() error {
			if bounds, err := local.HostBounds(); err == nil {
				specs.HostMemory = bounds.Memory
			}
			return nil
		}),
		steps.Into("release", &specs.Release, func() (release.Release, error) {
			return planerollout.ReleaseToRun(h.dir, wanted.Cluster.Spec, time.Now())
		}),
		steps.Into("ports", &specs.Places, func() (component.Places, error) {
			ports, err := h.service.ports.Cluster(h.dir, int(wanted.Cluster.Spec.APIServer.Port))
			return ports.Places(), err
		}),
		steps.New("simulated machines", func() error { specs.Simulates = simulates(account, wanted); return nil }),
		steps.New("Karpenter", func() error { specs.Karpenter = h.runsKarpenter(specs); return nil }),
		steps.New("users", func() error { h.ensureUsers(); return nil }),
		steps.Into("issuer", &specs.Issuer, func() (component.Issuer, error) { return issuer.EnsureCluster(account.State, h.dir) }),
		steps.Into("network", &specs.Network, func() (clusternetwork.Network, error) { return networkrecord.Ensure(specs) }),
		steps.Into("encryption key", &specs.EncryptionKey, func() (string, error) { return encryptionkey.Ensure(h.dir.PKI(), h.dir.Etcd()) }),
		steps.New("certificates", func() error { return h.ensureKeys(specs, time.Now()) }),
		steps.New("keys of service accounts", func() error { return tokenkeys.Begin(specs) }),
		steps.New("kubeconfig", func() error { return planeclient.WriteKubeconfig(specs) }),
		steps.New("feature gates", func() error {
			h.warnOfGates(specs.Release, account.BinDir, wanted.Cluster.Spec.FeatureGates)
			return nil
		}),
	)
	return specs, err
}

// ensureKeys makes and renews what the cluster's components need.
func (h *hosted) ensureKeys(c component.Config, now time.Time) error {
	credentials, err := component.Credentials(c)
	if err != nil {
		return err
	}
	written, err := h.keys.Ensure(credentials, now)
	if err == nil {
		var more []string
		more, err = h.service.keys.Ensure(component.Membership(c), now)
		written = append(written, more...)
	}
	if len(written) > 0 {
		h.log.Info("issued certificates", "names", written)
	}
	return err
}

// renew issues certificates anew before they end. Every component reads its file again by itself.
func (h *hosted) renew(ctx context.Context, specs component.Config) {
	for pause(ctx, renewalInterval) == nil {
		err := h.ensureKeys(specs, time.Now())
		if err == nil {
			err = planeclient.WriteKubeconfig(specs)
		}
		if err != nil {
			h.log.Error("renewing certificates", "error", err)
		}
	}
}

// requestReload has the cluster's configuration read again.
func (h *hosted) requestReload() {
	select {
	case h.reload <- struct{}{}:
	default: // a request is on its way already
	}
}

// setReader sets the client that the status is read with.
func (h *hosted) setReader(reader client.Reader) {
	h.mu.Lock()
	h.reader = reader
	h.mu.Unlock()
}

// say sets what the cluster waits for, for people who wait for it.
func (h *hosted) say(message string) {
	h.mu.Lock()
	changed := h.message != message
	h.message = message
	h.mu.Unlock()
	if changed && message != "" {
		h.log.Info("waiting", "reason", message)
	}
}

func (h *hosted) components() []runner.Status {
	h.mu.Lock()
	running := h.runner
	h.mu.Unlock()
	if running == nil {
		return nil
	}
	return running.Status()
}

// splitters make the log of security of each API server.
func (h *hosted) splitters() ([]*auditlog.Splitter, error) {
	splitters := make([]*auditlog.Splitter, component.APIServers)
	for slot := range splitters {
		var err error
		if splitters[slot], err = auditlog.New(auditlog.Config{Path: h.dir.Audit(slot), Kept: h.dir.SecurityLog(slot), Log: h.log}); err != nil {
			return nil, err
		}
	}
	return splitters, nil
}

// securityState is since when the log of security is whole.
func (h *hosted) securityState() auditlog.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := make([]auditlog.State, len(h.securityLog))
	for i, log := range h.securityLog {
		states[i] = log.State()
	}
	return auditlog.Merge(states...)
}
