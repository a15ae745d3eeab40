// SPDX-License-Identifier: Apache-2.0

package snapshotcontroller_test

import (
	"testing"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/snapshotcontroller"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, snapshotcontroller.Addon())
	manifesttest.Bindings(t, objects,
		"ServiceAccount snapshot-controller: snapshot-controller-leaderelection in kube-system",
		"ServiceAccount snapshot-controller: snapshot-controller-runner",
	)
	manifesttest.Narrow(t, objects)
	addontest.Version(t, snapshotcontroller.Addon(), "snapshotcontroller", "github.com/kubernetes-csi/external-snapshotter/v8")
}

func TestRead(t *testing.T) {
	t.Parallel()
	addontest.Read(t, snapshotcontroller.Addon(), `{"replicas":1}`, "")
	addontest.Read(t, snapshotcontroller.Addon(), `{"replicaCount":1}`, "replicaCount")
}
