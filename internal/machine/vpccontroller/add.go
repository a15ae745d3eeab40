// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/vpc"
)

// Add adds the controller to a manager of the management plane.
func Add(mgr manager.Manager, config Config) error {
	if err := config.validate(); err != nil {
		return err
	}
	vpcOf := func(_ context.Context, object client.Object) []reconcile.Request {
		subnet, ok := object.(*v1alpha1.Subnet)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: subnet.Spec.VPCID}}}
	}
	err := builder.ControllerManagedBy(mgr).Named("vpc").For(&v1alpha1.VPC{}).
		Watches(&v1alpha1.Subnet{}, handler.EnqueueRequestsFromMapFunc(vpcOf)).
		Complete(&reconciler{Config: config, api: mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("adding the controller of VPCs: %w", err)
	}
	return nil
}

func (c Config) validate() error {
	switch {
	case !filepath.IsAbs(c.Root):
		return fmt.Errorf("directory of VPCs %q is not an absolute path", c.Root)
	case len(c.Zones) == 0:
		return errors.New("the controller of VPCs needs the zones of the region")
	case c.Store == nil || c.Networks == nil || c.Processes == nil || c.HostRanges == nil:
		return errors.New("the controller of VPCs needs the records of machines, networks, processes and the host's addresses")
	}
	return nil
}

// OnDisk makes networks of namespaces, below the directory of all VPCs.
type OnDisk struct {
	// Root is that directory.
	Root string
	// Possible is false where there are no namespaces, and so no networks: machines are only simulated there.
	Possible bool
}

// Ensure implements [Networks].
func (o OnDisk) Ensure(id string) error {
	network, err := vpc.Open(o.Root, id)
	if err != nil || !o.Possible {
		return err
	}
	return network.Ensure()
}

// Remove implements [Networks].
func (o OnDisk) Remove(id string) error {
	if err := vpc.ValidateID(id); err != nil {
		return err
	}
	return vpc.Remove(filepath.Join(o.Root, id))
}
