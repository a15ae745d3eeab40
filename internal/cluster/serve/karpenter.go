// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/cluster/karpentercontroller"
	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/plane/component"
)

// runsKarpenter reports whether Karpenter runs in the control plane: the cluster asks for it, or the machines that it
// launched are still to go. A cluster that is being deleted launches no more machines.
func (h *hosted) runsKarpenter(c component.Config) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.VPC && !h.launchesNoMore && (c.Cluster.Spec.Compute.On() || karpentercontroller.Left(c))
}

// launchNoMore ends Karpenter at once. The machines that it launched stay.
func (h *hosted) launchNoMore() {
	h.mu.Lock()
	first := !h.launchesNoMore
	h.launchesNoMore = true
	h.mu.Unlock()
	if first {
		h.requestReload()
	}
}

// addKarpenter has the manager prepare the cluster for the Karpenter of its control plane, or take that away.
func (h *hosted) addKarpenter(mgr manager.Manager, connection *rest.Config, roles *clusteraccess.NodeRoles, c component.Config) error {
	if !c.Karpenter {
		return nil
	}
	api, err := client.New(connection, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("making a client of the cluster for Karpenter: %w", err)
	}
	server, err := discovery.NewDiscoveryClientForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client for the API server's version: %w", err)
	}
	files := addonfiles.New(hostagent.New(hostagent.Config{State: c.State}), c.Dir.Namespace(), c.BinDir)
	controller, err := karpentercontroller.New(karpentercontroller.Config{
		Plane: c, Cluster: api, Roles: roles, Store: h.service.identityStore, Assume: h.assume, Ended: h.requestReload, Log: h.log, Now: time.Now,
		Kinds: func() ([]*unstructured.Unstructured, error) { return files.Kinds(karpenter.Name) },
		Minor: func(ctx context.Context) (string, error) {
			return minorOfMachines(ctx, mgr.GetClient(), server, c.Dir.Namespace())
		},
	})
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		controller.Run(ctx)
		return nil
	}))
}

// minorOfMachines is the minor of the machines that Karpenter in the control plane of a cluster launches. The API server
// itself is asked: the status of a cluster has no version before Karpenter is Ready.
func minorOfMachines(ctx context.Context, management client.Reader, server *discovery.DiscoveryClient, namespace string) (string, error) {
	var cluster v1alpha1.Cluster
	if err := management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, &cluster); err != nil {
		return "", fmt.Errorf("reading the version of the cluster: %w", err)
	}
	var updates v1alpha1.UpdateList
	if err := management.List(ctx, &updates, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("reading the updates of the cluster: %w", err)
	}
	is, err := server.WithLegacy().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return karpentercontroller.MinorOf(is.GitVersion, cluster.Spec, updatecontroller.GoingBack(updates.Items))
}

// assume makes credentials of the role of a cluster's Karpenter.
func (h *hosted) assume(namespace string) (identityservice.Credentials, error) {
	h.service.mu.Lock()
	sessions := h.service.sessions
	h.service.mu.Unlock()
	if sessions == nil {
		return identityservice.Credentials{}, identityservice.ErrNotReady
	}
	return identityservice.AssumeForKarpenter(sessions, namespace)
}

// compute refuses that Karpenter runs in the control plane of a cluster that is there.
func (c clusterHosts) compute(ctx context.Context, h *hosted, is, wanted v1alpha1.ClusterSpec) error {
	if is.Compute.On() || !wanted.Compute.On() {
		return nil
	}
	if err := addonfiles.CheckCompute(wanted, c.account.BinDir, c.account.VPC); err != nil {
		return err
	}
	var addons v1alpha1.AddonList
	if err := c.api.List(ctx, &addons, client.InNamespace(h.dir.Namespace())); err != nil {
		return unasked{fmt.Errorf("listing the add-ons of the cluster: %w", err)}
	}
	return addonfiles.CheckComputeAlone(wanted, addons.Items)
}

// Close implements [clustercontroller.Hosts].
func (c clusterHosts) Close(object *v1alpha1.Cluster) {
	if h := c.cluster(object.Namespace); h != nil && object.Namespace != "" {
		h.launchNoMore()
	}
}
