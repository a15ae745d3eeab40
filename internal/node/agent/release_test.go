// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestProgramsAreOfTheMachinesRelease(t *testing.T) {
	t.Parallel()
	a := &agent{config: Config{BinDir: "/opt/muster/bin"}}
	self := instance(imds.Identity{ImageID: ami.All()[0].ID})
	if self.Release.Version != release.All()[0].Version {
		t.Errorf("a machine of the first image runs %q", self.Release.Version)
	}
	self.Release = releasetest.Next()
	a.setSelf(self)
	for name, want := range map[string]string{
		"kubelet": "/opt/muster/bin/1.99/kubelet", "kube-proxy": "/opt/muster/bin/1.99/kube-proxy", "kubelet-config-check": "/opt/muster/bin/1.99/kubelet-config-check",
		"containerd": "/opt/muster/bin/containerd",
	} {
		if got := programPath(a, name); got != want {
			t.Errorf("%s is at %s, not at %s", name, got, want)
		}
	}
}
