// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// The claims of machines are told before anything starts: of the clusters that are asked for and of existing clusters.
func TestClaims(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir())
	for _, name := range []string{"muster", "other"} {
		cluster := dir.Cluster(name)
		if err := os.MkdirAll(string(cluster), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: " + name + "}}\n---\n" +
			"{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: default}, spec: {scalingConfig: {desiredSize: 2}}}\n"
		if err := os.WriteFile(cluster.Record(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := capacity.Host{CPUs: 2, Memory: 16 << 30}
	for _, test := range []struct {
		wanted clusterconfig.Config
		nodes  int
	}{
		{clusterconfig.Default(99, v1alpha1.ProviderLocal), 101},
		{clusterconfig.Default(99, v1alpha1.ProviderSimulated), 2},
		{clusterconfig.Named("third", 1, v1alpha1.ProviderLocal), 5},
	} {
		if got := claims(host, dir, []clusterconfig.Config{test.wanted}); got.Nodes != test.nodes || got.ClaimedCPUs != 2*test.nodes {
			t.Errorf("%s: %+v, want %d nodes", test.wanted.Cluster.Spec.Name, got, test.nodes)
		}
	}
}

// A host is measured for local machines alone, and each warning is one line with its file.
func TestTooFew(t *testing.T) {
	t.Parallel()
	if got := tooFew(0); got != nil {
		t.Errorf("without machines: %q", got)
	}
	for _, line := range tooFew(1) {
		if strings.Contains(line, "\n") || !strings.Contains(line, "/etc/sysctl.d/60-muster.conf") {
			t.Errorf("%q", line)
		}
	}
}
