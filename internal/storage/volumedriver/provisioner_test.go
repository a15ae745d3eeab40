// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	provisioning "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// options are those of a claim that asks for so much.
func options(size string, change func(*corev1.PersistentVolumeClaim)) provisioning.ProvisionOptions {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "shop", "data"
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	if change != nil {
		change(claim)
	}
	return provisioning.ProvisionOptions{PVName: "pvc-1", PVC: claim, StorageClass: &storagev1.StorageClass{Parameters: asks("", nil).Parameters}}
}

// If a claim fails, the scheduler looks again only if room is missing.
func TestProvisionFails(t *testing.T) {
	for name, test := range map[string]struct {
		options provisioning.ProvisionOptions
		state   provisioning.ProvisioningState
		says    string
	}{
		"no room":    {options("100Pi", nil), provisioning.ProvisioningReschedule, "MiB left"},
		"a selector": {options("1Mi", func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }), provisioning.ProvisioningFinished, "selector"},
	} {
		w := newWorld(t)
		volume, state, err := (&provisioner{w.controller, w.node.cluster, snapshotObjects(), record.NewFakeRecorder(10)}).Provision(t.Context(), test.options)
		if volume != nil || state != test.state || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v, %v", name, volume, state, err)
		}
	}
	w := newWorld(t)
	w.failure = errors.New("away")
	if _, state, err := (&provisioner{w.controller, w.node.cluster, snapshotObjects(), record.NewFakeRecorder(10)}).Provision(t.Context(), options("1Mi", nil)); err == nil || state != provisioning.ProvisioningInBackground {
		t.Errorf("the management plane fails: %v, %v", state, err)
	}
	if volume, state, err := (&provisioner{w.controller, w.node.cluster, snapshotObjects(), record.NewFakeRecorder(10)}).Provision(t.Context(), options("1Mi", nil)); err != nil || state != provisioning.ProvisioningFinished || volume.Spec.Capacity.Storage().String() != "1Mi" {
		t.Errorf("afterwards: %v, %v, %v", volume, state, err)
	}
}
