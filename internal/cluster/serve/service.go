// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/cluster/stateconversion"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/balancerstore"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/diskreserve"
	"muster.dev/muster/internal/plane/encryptionkey"
	"muster.dev/muster/internal/plane/etcdspace"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/logshipper"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/readcache"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
	"muster.dev/muster/internal/storage/filestore"
)

const (
	// renewalInterval is how often certificates are looked at. They are due a month before they end, but a host's clock may
	// jump, and a host may sleep: what ended meanwhile is issued within a minute.
	renewalInterval = time.Minute
	// retryInterval is the pause after a step of the start that failed: mostly an API server that is not there yet.
	retryInterval = 500 * time.Millisecond
)

// Config configures a Service.
type Config struct {
	State  statedir.Dir
	BinDir string
	Log    *slog.Logger
	// Guarded makes the service keep a guard that starts it again when it dies.
	Guarded bool
	// Services registers the actions of the account's AWS APIs beside STS and IAM. It is called each time that the
	// front begins; nil leaves STS and IAM alone.
	Services func(*awsfront.Front, Account) error
	// Controllers adds the controllers of what these APIs keep to the account's manager. Their Account has a client of the
	// management plane, the components, the host's addresses and its room, and nothing else.
	Controllers func(manager.Manager, Account) error
	// Public returns what finds, by a client of the management plane, the route table and the internet gateway that a subnet
	// of a VPC has a route to; empty for a private subnet. Nil: all are private.
	Public func(client.Reader) func(ctx context.Context, vpc, subnet string) (table, gateway string, err error)
}

// Service runs the account of one state directory: its management plane, its identity service, and its clusters.
type Service struct {
	cfg     Config
	started time.Time
	keys    *rotator.Keys // the account's
	look    chan struct{} // at the directories of clusters
	managed chan struct{} // closed when the management plane serves muster's kinds
	making  sync.Mutex    // one cluster is decided about at a time
	memory  func() (available int64, err error)
	turns   planerollout.Turns // of planes whose API servers are replaced
	news    planerollout.News  // of the management plane's API servers, for metrics
	ports   *portplan.Planes
	files   *filestore.Store // of all clusters
	issuers *issuer.Serving  // of all clusters

	writes   *readcache.Writes   // of this process to the management plane
	machines *planeclient.Shared // set before managed is closed
	boots    *nodegroup.Boots    // of the local machines of all clusters
	room     *hostroom.Room      // likewise

	etcd    etcdspace.Watch // of the management plane
	disk    *diskreserve.Reserve
	freeing sync.Mutex // that etcd's space is given back once at a time

	balancers *balancerstore.Store

	mu             sync.Mutex
	message        string
	runner         runner.Runner            // of the account's own components, without the management plane's
	processes      *runner.List             // that it runs
	plane          runner.Runner            // of the management plane's components
	planeNote      string                   // why the management plane runs on as it was
	managementEtcd *etcdspace.Upkeep        // once it runs
	identities     identityservice.Store    // while the identity service runs
	sessions       *identityservice.Service // likewise
	hosted         map[statedir.Cluster]*hosted
	found          bool                       // every cluster that has a record was hosted once
	explainer      *serviceaccounts.Explainer // while the identity service runs
	viewers        *viewers                   // likewise
	logs           *logshipper.Keeper         // once the account was prepared
	shipper        *logshipper.Shipper        // of logs, once the account's own components run

	metrics *prometheus.Registry

	// boundNote says why machines are not held to their bounds.
	boundNote string

	// usersNote says why components of clusters have no users of their own. It is set before the first of them starts.
	usersNote string
}

// NewService makes a service that does nothing yet.
func NewService(cfg Config) (*Service, error) {
	if cfg.State == "" || cfg.BinDir == "" || cfg.Log == nil {
		return nil, errors.New("service needs a state directory, a directory of programs and a logger")
	}
	s := &Service{
		cfg: cfg, files: filestore.New(cfg.State.FileSystems()), started: time.Now(), look: make(chan struct{}, 1), managed: make(chan struct{}),
		memory: host.MemoryRoom, ports: portplan.New(cfg.State, func() ([]runner.Running, error) { return supervise.Running(cfg.State) }),
		keys: rotator.NewKeys(authority.NewAccountStore(cfg.State.PKI())), hosted: map[statedir.Cluster]*hosted{}, issuers: issuer.NewServing(cfg.Log),
		metrics: prometheus.NewRegistry(), writes: readcache.NewWrites(v1alpha1.GroupVersion.Group),
		boots: nodegroup.NewBoots(capacity.Boots(host.CPUs())), disk: diskreserve.New(cfg.State, cfg.Log), room: roomOfHost(cfg.State),
	}
	s.balancers = balancerstore.New(s.balancerProcesses)
	return s, nil
}

// Run serves until the context ends, and leaves components and machines running. It returns an error at once if the
// state directory cannot be served: another service runs on it, it was never set up, or a file of the account is
// damaged. A damaged file of a cluster keeps that cluster alone from running; its status says so.
func (s *Service) Run(ctx context.Context) error {
	guard.AwaitEnd(ctx, s.cfg.State, s.cfg.Log)
	release, err := guard.Lock(s.cfg.State.Lock())
	if err != nil {
		return err
	}
	defer release()
	defer s.ports.Close()
	if err := os.MkdirAll(s.cfg.State.Run(), 0o700); err != nil {
		return fmt.Errorf("making directory %s for sockets: %w", s.cfg.State.Run(), err)
	}
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		supervise.NewCollector(s.allComponents), filestore.NewCollector(s.files),
		auditlog.NewCollector(func() map[string]auditlog.State { return byCluster(s, (*hosted).securityState) }),
		planerollout.NewCollector(func() map[string]planerollout.Figures {
			figures := byCluster(s, func(h *hosted) planerollout.Figures { return h.news.Figures() })
			figures[""] = s.news.Figures() // the management plane's
			return figures
		}),
		etcdspace.NewCollector(func() map[string]etcdspace.Space {
			spaces := byCluster(s, func(h *hosted) etcdspace.Space { return h.etcd.Last() })
			spaces[""] = s.etcd.Last() // the management plane's
			return spaces
		}))

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() { s.disk.Run(ctx) })
	group.Go(func() { cancel(controlsocket.Serve(ctx, s.cfg.State.Socket(), commands{s}, s.metrics)) })

	if err := s.runAccount(ctx); err != nil {
		cancel(err)
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// runAccount runs the account's own processes and its clusters until the context ends.
func (s *Service) runAccount(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var account component.Account
	var supervisor *supervise.Supervisor
	var plane managementPlane
	var shipper *logshipper.Shipper
	err := steps.InOrder(s.cfg.Log,
		steps.New("layout of the state directory", func() error { return stateconversion.Of(s.cfg.State).Run(s.cfg.Log) }),
		steps.Into("account", &account, s.prepare),
		steps.New("users of control planes", func() error {
			if s.usersNote = planeid.Prepare(s.cfg.State, s.cfg.BinDir); s.usersNote != "" {
				s.cfg.Log.Warn("control planes have no users of their own", "reason", s.usersNote)
			}
			return nil
		}),
		steps.Into("supervisor", &supervisor, func() (*supervise.Supervisor, error) {
			return supervise.New(supervise.Config{State: s.cfg.State, Log: s.cfg.Log})
		}),
		steps.Into("management plane", &plane, func() (managementPlane, error) { return newManagementPlane(ctx, s, account) }),
		steps.Into("shipper of logs", &shipper, func() (*logshipper.Shipper, error) { return newShipper(s, account) }), //nolint:contextcheck // what it starts ends with the supervisor
	)
	if err != nil {
		return err
	}
	processes := component.AccountSpecs(account)
	if s.cfg.Guarded {
		processes = append(processes, guard.Spec(s.cfg.State, s.cfg.BinDir))
	}
	if err := supervisor.Apply(ctx, processes); err != nil {
		return err
	}
	upkeep := etcdspace.OfManagement(account)
	s.mu.Lock()
	s.runner, s.processes, s.plane, s.managementEtcd, s.shipper = supervisor, runner.NewList(supervisor, processes), plane.supervisor, &upkeep, shipper
	s.mu.Unlock()

	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { plane.run(ctx) })
	group.Go(func() { s.renew(ctx, account) })
	group.Go(func() { s.etcd.Run(ctx, upkeep, s.disk, warnOfManagementSpace(s.cfg.Log), s.cfg.Log) })
	group.Go(func() { s.control(ctx, account) })
	group.Go(func() { s.runClusters(ctx, account) })
	group.Go(func() { shipper.Run(ctx) })
	group.Go(func() { local.KeepBound(ctx, s.cfg.State, s.cfg.Log, s.noteBound) })
	supervisor.Run(ctx)
	return nil
}

// prepare makes whatever the account's specs are built from.
func (s *Service) prepare() (component.Account, error) {
	state := s.cfg.State
	shared := component.Account{State: state, BinDir: s.cfg.BinDir, VPC: local.Possible(), Logs: logshipper.Asked(state, s.cfg.BinDir)}
	var own account.Account
	err := steps.InOrder(s.cfg.Log,
		steps.New("directory of keys", func() error { return makeKeysDir(state.PKI()) }),
		steps.New("account", func() (err error) {
			own, err = account.Read(state)
			shared.Region = own.Region
			return err
		}),
		steps.New("issuers", func() error {
			at, err := issuer.OfAccount(state)
			shared.Issuers = component.Issuers{Address: own.Address, Port: at.Port, Host: at.Name(), Loopback: at.Loopback}
			return err
		}),
		steps.New("default VPC", func() error { return networkrecord.DescribeDefault(state, own.Region, egresspolicy.NAT) }),
		steps.Into("VPCs", &shared.VPCs, func() ([]component.VPC, error) { return networkrecord.Described(state) }),
		steps.Into("ports", &shared.Places, func() (component.AccountPlaces, error) {
			ports, err := s.ports.Account()
			return ports.Places(), err
		}),
		steps.Into("encryption key", &shared.EncryptionKey, func() (string, error) { return encryptionkey.Ensure(state.PKI(), state.ManagementEtcd()) }),
		steps.New("certificates", func() error { return s.ensureKeys(shared, time.Now()) }),
		steps.New("kubeconfig", func() error { return planeclient.WriteManagementKubeconfig(shared) }),
	)
	return shared, err
}

func makeKeysDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making directory %s for keys: %w", path, err)
	}
	return nil
}

// ensureKeys makes and renews what the account's components need. VPCs may have come and gone since they were looked
// at.
func (s *Service) ensureKeys(account component.Account, now time.Time) error {
	var err error
	if account.VPCs, err = networkrecord.Described(account.State); err != nil {
		return err
	}
	credentials, err := component.AccountCredentials(account)
	if err != nil {
		return err
	}
	written, err := s.keys.Ensure(credentials, now)
	if len(written) > 0 {
		s.cfg.Log.Info("issued certificates", "names", written)
	}
	return err
}

// renew issues certificates anew before they end. Every component reads its file again by itself.
func (s *Service) renew(ctx context.Context, account component.Account) {
	for pause(ctx, renewalInterval) == nil {
		err := s.ensureKeys(account, time.Now())
		if err == nil {
			err = planeclient.WriteManagementKubeconfig(account)
		}
		if err != nil {
			s.cfg.Log.Error("renewing certificates", "error", err)
		}
	}
}

// noteBound sets why machines are not held to their bounds; nothing if they are.
func (s *Service) noteBound(note string) {
	s.mu.Lock()
	s.boundNote = note
	s.mu.Unlock()
}

// setIdentities sets the identity service and its store; nil when it has ended.
func (s *Service) setIdentities(store identityservice.Store, sessions *identityservice.Service) {
	s.mu.Lock()
	s.identities, s.sessions = store, sessions
	s.mu.Unlock()
}

func (s *Service) identityStore() identityservice.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identities
}

// say sets what the service works at, for people who wait for it.
func (s *Service) say(message string) {
	s.mu.Lock()
	changed := s.message != message
	s.message = message
	s.mu.Unlock()
	if changed && message != "" {
		s.cfg.Log.Info("waiting", "reason", message)
	}
}

// retry repeats a step until it succeeds, saying what keeps it from it.
func retry(ctx context.Context, what string, say func(string), step func(context.Context) error) error {
	for {
		err := step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			say("")
			return nil
		}
		say(what + ": " + err.Error())
		if err := pause(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// pause waits before a step is tried again.
func pause(ctx context.Context, d time.Duration) error { return steps.Pause(ctx, d) }

// accountRunner runs the account's own components; nil until it does.
func (s *Service) accountRunner() runner.Runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runner
}

// components are those of the management plane, and the account's other ones.
func (s *Service) components() (statuses []runner.Status) {
	s.mu.Lock()
	runners := []runner.Runner{s.plane, s.runner}
	s.mu.Unlock()
	for _, running := range runners {
		if running != nil {
			statuses = append(statuses, running.Status()...)
		}
	}
	return statuses
}

// allComponents are the processes of the account, whose namespace is empty, and of the clusters.
func (s *Service) allComponents() map[string][]runner.Status {
	all := byCluster(s, (*hosted).components)
	all[""] = s.components()
	return all
}

// managementClient is the service's own client of the management plane.
func (s *Service) managementClient(account component.Account, scheme *runtime.Scheme) (client.WithWatch, error) {
	return planeclient.NewManagement(planeclient.Management(account, s.writes), scheme)
}
