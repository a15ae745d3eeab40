// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/storage/volumedriver"
	"muster.dev/muster/internal/storage/volumemount"
)

// addVolumes adds the volume driver of the cluster, where there are machines that mount.
func (h *hosted) addVolumes(mgr manager.Manager, scheme *runtime.Scheme, connection *rest.Config, c component.Config, providers machine.Providers) error {
	able, err := machine.AskAll[interface {
		volumedriver.Machines
		volumemount.Mounts
	}](onHost(providers, h.service.files), v1alpha1.MountVolumes)
	if err != nil || len(able) == 0 {
		return err
	}
	if len(able) > 1 {
		return fmt.Errorf("the volume driver mounts on machines of one provider, and the machines of %d can %s", len(able), v1alpha1.MountVolumes)
	}
	management, err := h.service.managementClient(c.Account, scheme)
	if err != nil {
		return err
	}
	cluster, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client of the cluster for volumes: %w", err)
	}
	snapshots, err := dynamic.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("making a client of the cluster for snapshots: %w", err)
	}
	driver, err := volumedriver.New(volumedriver.Config{
		ClusterName: c.Cluster.Spec.Name, Inventory: mgr.GetClient(), Management: management, Cluster: cluster, Snapshots: snapshots, Machines: able[0],
		Mounts: able[0],
		Files:  h.service.files, DefaultFileSystem: v1alpha1.DefaultFileSystemID(account.DefaultID), Log: h.log,
		VPCID: c.Network.VPCID,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(driver); err != nil {
		return fmt.Errorf("adding the volume driver: %w", err)
	}
	return nil
}
