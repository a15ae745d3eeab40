// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/issuerkeys"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/socketdir"
)

// serveIdentity answers STS and IAM, and authenticators, until the context ends. The management plane has muster's kinds by now; it may
// go away at any time, and the identity service goes on with what it knows.
func (s *Service) serveIdentity(ctx context.Context, scheme *runtime.Scheme, c component.Account) {
	_ = retry(ctx, "serving identities", s.say, func(ctx context.Context) error { return s.identity(ctx, scheme, c) })
}

func (s *Service) identity(ctx context.Context, scheme *runtime.Scheme, c component.Account) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	begin := func(part func() error) {
		group.Go(func() {
			if err := part(); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}

	api, err := s.managementClient(c, scheme)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NamespaceIAM}}
	if err := api.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace of access keys: %w", err)
	}
	sealer, err := identityservice.OpenSealer(c.State.SessionKeys(), time.Now())
	if err != nil {
		return err
	}
	store, err := identityservice.NewKubernetes(identityservice.KubernetesConfig{Client: api, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	machines := identityservice.NewInformer(api, &v1alpha1.Machine{}, &v1alpha1.MachineList{}, "")
	pods := PodIdentities{service: s, machines: machines.Store(), associations: podidentity.NewAssociations(api)}
	service, err := identityservice.New(identityservice.Config{
		Store: store, Sealer: sealer, Instances: machineInstances{machines.Store()}, Pods: pods, Region: c.Region.Name, Log: s.cfg.Log,
		Issuers: tokenIssuers{s.podsOfIssuer, issuerkeys.New(issuerkeys.Config{})},
		Refused: func(cluster, instance string, r keyservice.Refused) {
			if !isMachineOf(machines.Store(), cluster, instance) {
				return // an authenticator says nothing about machines of other clusters
			}
			s.refuse(nodegroup.Heard{Machine: instance, Refusal: nodegroup.Refusal{Rule: r.Rule, Saw: r.Saw, Fix: r.Fix}})
		},
	})
	if err != nil {
		return err
	}
	front, err := service.Front(awsfront.Config{Log: s.cfg.Log, Metrics: s.metrics})
	if err != nil {
		return err
	}
	if s.cfg.Services != nil {
		reads, err := planeclient.NewReads(api, s.writes)
		if err != nil {
			return err
		}
		group.Go(func() { reads.Run(ctx) })
		if err := s.cfg.Services(front, Account{
			Identity: service, Management: reads, Components: c, Pods: pods, Deprecated: s.deprecated,
			Cluster:    func(namespace string) (client.Client, error) { return s.clusterClient(scheme, namespace) },
			HostRanges: func() ([]netip.Prefix, error) { return balancerrange.OfHost(c.State) },
		}); err != nil {
			return fmt.Errorf("registering the AWS APIs: %w", err)
		}
	}
	machines.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { service.InstancesChanged(o.(*v1alpha1.Machine).Name) },
		UpdateFunc: func(old, now any) { machineChanged(service, old.(*v1alpha1.Machine), now.(*v1alpha1.Machine)) },
		DeleteFunc: func(o any) {
			if m, ok := o.(*v1alpha1.Machine); ok {
				service.InstancesChanged(m.Name)
			}
		},
	})
	group.Go(func() { machines.Run(ctx) })
	group.Go(func() { pods.associations.Run(ctx) })
	group.Go(func() { pods.tellAssociations(ctx) })
	begin(func() error { return store.Run(ctx) })
	s.setIdentities(store)
	defer s.setIdentities(nil)
	begin(func() error { return s.firstIdentity(ctx, store, c) })
	// An instance that was not heard of yet would look like one that is gone: machines are known before anything is answered.
	if !cache.WaitForCacheSync(ctx.Done(), machines.HasSynced) {
		return ctx.Err()
	}
	group.Go(func() { service.Run(ctx) })
	s.setPodExplainer(&podExplainer{PodIdentities: pods, identity: service, store: store, region: c.Region.Name})
	defer s.setPodExplainer(nil)

	people, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(component.Loopback, strconv.Itoa(c.Ports.Identity)))
	if err != nil {
		return fmt.Errorf("listening for STS and IAM: %w", err)
	}
	certificate := &certificateFile{path: c.Credential(component.CredentialIdentity)}
	begin(func() error { return front.Serve(ctx, people, certificate.get) })
	if c.VPC {
		machines, err := socketdir.ListenPrivate(ctx, c.State.MachinesSocket())
		if err != nil {
			return fmt.Errorf("listening for machines' requests of STS and IAM: %w", err)
		}
		begin(func() error { return front.ServeMachines(ctx, machines, certificate.get) })
	}
	for socket, credentials := range map[string]bool{c.State.IdentitySocket(): false, c.State.MetadataSocket(): true} {
		var peers func(uint32) bool
		if !credentials {
			peers = s.isAuthenticator
		}
		keys, err := keyservice.NewServer(keyservice.ServerConfig{
			Backend: service, Credential: accountCredential(c, component.CredentialAccount), Credentials: credentials,
			Clusters: s.hasCluster, Peers: peers, Logger: s.cfg.Log,
		})
		if err != nil {
			return err
		}
		listener, err := keys.Listen(ctx, socket)
		if err != nil {
			return err
		}
		begin(func() error { return keys.Serve(ctx, listener) })
	}
	begin(func() error { return registrylogin.Serve(ctx, c.State.RegistryLoginSocket(), service, s.cfg.Log) })
	<-ctx.Done()
	return context.Cause(ctx)
}

// clusterClient makes a client of a cluster that is served, for its access entries.
func (s *Service) clusterClient(scheme *runtime.Scheme, namespace string) (client.Client, error) {
	specs, err := s.specsOf(namespace)
	if err != nil {
		return nil, err
	}
	return client.New(planeclient.Cluster(specs), client.Options{Scheme: scheme, Mapper: clusteraccess.Mapper()})
}

// specsOf is the configuration of the components of a cluster that is served, by its namespace.
func (s *Service) specsOf(namespace string) (component.Config, error) {
	h := s.cluster(namespace)
	if h == nil || namespace == "" {
		return component.Config{}, fmt.Errorf("no cluster of namespace %q is served", namespace)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.specs, nil
}

// accountCredential is a credential by which the account and its callers know each other.
func accountCredential(c component.Account, name string) keyservice.Credential {
	return keyservice.Credential{CA: c.Authority(authority.Account), File: c.Credential(name)}
}

// firstIdentity makes the first account, and says to AWS's tools where the service is.
func (s *Service) firstIdentity(ctx context.Context, store identityservice.Store, c component.Account) error {
	changed, stop := store.Changed()
	defer stop()
	for {
		made, err := identityservice.First(ctx, store, identityservice.DefaultAccount, c.State.IAMCredentials(), time.Now())
		if made {
			s.cfg.Log.Info("made the first IAM user", "user", identityservice.FirstUserName, "credentials", c.State.IAMCredentials())
		}
		if err == nil {
			return identityservice.WriteToolConfig(c.State.IAMConfig(), c.Region.Name, c.IdentityURL(), c.Authority(authority.Account))
		}
		if !errors.Is(err, identityservice.ErrNotReady) {
			s.cfg.Log.Warn("making the first IAM user", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed: // such as that it is ready
		case <-time.After(retryInterval):
		}
	}
}

// machineInstances are the Machines of the management plane, which nodes cannot write.
type machineInstances struct{ machines cache.Store }

// Lookup finds a machine. One that is being deleted is there until its instance is gone.
func (m machineInstances) Lookup(id string) (identityservice.Instance, bool) {
	object, exists, err := m.machines.GetByKey(id)
	if err != nil || !exists {
		return identityservice.Instance{}, false
	}
	machine := object.(*v1alpha1.Machine)
	return identityservice.Instance{
		Profile: machine.Spec.InstanceProfile, PrivateDNSName: machine.Status.NodeName, Cluster: machine.Spec.ClusterName,
	}, true
}

// isMachineOf reports whether a machine is there and a cluster's.
func isMachineOf(machines cache.Store, cluster, id string) bool {
	object, exists, err := machines.GetByKey(id)
	if err != nil || !exists {
		return false
	}
	machine, ok := object.(*v1alpha1.Machine)
	return ok && machine.Spec.ClusterName == cluster
}

// machineChanged reports changes of a machine that concern its identity; its status changes all the time.
func machineChanged(service *identityservice.Service, old, now *v1alpha1.Machine) {
	if old.UID != now.UID || old.Spec.InstanceProfile != now.Spec.InstanceProfile || old.Status.NodeName != now.Status.NodeName {
		service.InstancesChanged(now.Name)
	}
}

// certificateFile reads a certificate again when its file has been replaced.
type certificateFile struct {
	path string

	mu     sync.Mutex
	loaded *tls.Certificate
	from   os.FileInfo
}

func (f *certificateFile) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && f.loaded != nil && os.SameFile(info, f.from) && info.ModTime().Equal(f.from.ModTime()) {
		return f.loaded, nil
	}
	certificate, err := tls.LoadX509KeyPair(f.path, f.path)
	if err != nil {
		if f.loaded != nil {
			return f.loaded, nil // half replaced, or worse: the earlier certificate is good for days yet
		}
		return nil, fmt.Errorf("reading certificate of the identity service: %w", err)
	}
	f.loaded, f.from = &certificate, info
	return f.loaded, nil
}
