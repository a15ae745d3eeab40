// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
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
	machines, accounts := identityservice.NewMachines(api), s.serviceAccounts()
	pods := serviceaccounts.NewPods(accounts, machines, api)
	service, err := identityservice.New(identityservice.Config{
		Store: store, Sealer: sealer, Instances: machines, Pods: pods, Region: c.Region.Name, Log: s.cfg.Log,
		Issuers: serviceaccounts.NewIssuers(accounts), Refused: clusteraccess.Hear(machines, s.refuse),
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
			Identity: service, Management: reads, Components: c, Pods: pods, Insights: versions{s, reads}.insights, CheckVersion: versions{s, reads}.check,
			Cluster:    func(namespace string) (client.Client, error) { return s.clusterClient(scheme, namespace) },
			HostRanges: func() ([]netip.Prefix, error) { return balancerrange.OfHost(c.State) }, Room: s.room, Logs: keeperOf(s), Run: func(run func(context.Context)) { group.Go(func() { run(ctx) }) },
		}); err != nil {
			return fmt.Errorf("registering the AWS APIs: %w", err)
		}
	}
	machines.Tell(service)
	group.Go(func() { machines.Run(ctx) })
	group.Go(func() { pods.Associations.Run(ctx) })
	group.Go(func() { pods.TellWebhooks(ctx) })
	begin(func() error { return store.Run(ctx) })
	s.setIdentities(store, service)
	defer s.setIdentities(nil, nil)
	begin(func() error {
		if err := identityservice.AwaitFirst(ctx, store, identityservice.DefaultAccount, c.State.IAMCredentials(), s.cfg.Log); err != nil {
			return err
		}
		return identityservice.WriteToolConfig(c.State.IAMConfig(), c.Region.Name, c.Places.Identity.URL(), c.Authority(authority.Account))
	})
	// An instance that was not heard of yet would look like one that is gone: machines are known before anything is answered.
	if err := machines.Wait(ctx); err != nil {
		return err
	}
	group.Go(func() { service.Run(ctx) })
	defer answering(s, &serviceaccounts.Explainer{Pods: pods, Identity: service, Store: store, Region: c.Region.Name}, &viewers{service, front, c.Places.Identity.URL()})()
	if err := s.doors(c, accounts).Open(ctx, service, front, begin); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// doors are where the identity service is asked.
func (s *Service) doors(c component.Account, accounts serviceaccounts.Clusters) identityservice.Doors {
	doors := identityservice.Doors{
		Address: c.Places.Identity.Listen.String(), Certificate: c.Credential(component.CredentialIdentity),
		Identity: c.State.IdentitySocket(), Metadata: c.State.MetadataSocket(), Login: c.State.RegistryLoginSocket(),
		Here: accounts.Has, Peers: s.isAuthenticator,
	}
	doors.Account.CA, doors.Account.File = c.Authority(authority.Account), c.Credential(component.CredentialAccount)
	if c.VPC {
		doors.Machines = c.State.MachinesSocket()
	}
	return doors
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
