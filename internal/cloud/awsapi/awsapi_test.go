// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/release"
)

type noInstances struct{}

func (noInstances) Lookup(string) (identityservice.Instance, bool) {
	return identityservice.Instance{}, false
}

// noPods is an account without clusters.
type noPods struct{}

func (noPods) Cluster(string) (podidentity.Cluster, error) {
	return podidentity.Cluster{}, podidentity.ErrNoCluster
}

func (noPods) Machine(string) (node, cluster string, ok bool) { return "", "", false }

func (noPods) Association(podidentity.Cluster, string, string) (podidentity.Association, bool, error) {
	return podidentity.Association{}, false, nil
}

func (noPods) Role(podidentity.Pod, podidentity.Association, string) identityservice.PodRole {
	return identityservice.PodRole{}
}

func config(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	sealer, err := identityservice.OpenSealer(filepath.Join(dir, "keys.json"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := identityservice.New(identityservice.Config{
		Store: identityservicetest.NewMemory(), Sealer: sealer, Instances: noInstances{}, Region: "us-east-1", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Identity: identity, Pods: noPods{}, Management: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), PageKey: filepath.Join(dir, "page.key"), StackKey: filepath.Join(dir, "stacks.key"), Region: "us-east-1", Unbuilt: func(release.Release) string { return "" }, Compute: func(v1alpha1.ClusterSpec, []v1alpha1.Addon) string { return "" }, Cluster: func(string) (client.Client, error) { return nil, errors.New("none") }, Insights: func(context.Context, *v1alpha1.Cluster) []insight.Insight { return nil }, CheckVersion: func(context.Context, *v1alpha1.Cluster, release.Release) (string, []insight.Insight, error) {
		return "", nil, nil
	}, Usage: func(string) ([]machine.Usage, error) { return nil, nil }, HostRanges: func() ([]netip.Prefix, error) { return nil, nil }}
}

func frontOf(t *testing.T, c Config) *awsfront.Front {
	t.Helper()
	front, err := c.Identity.Front(awsfront.Config{Log: c.Log})
	if err != nil {
		t.Fatal(err)
	}
	if err := Register(front, c); err != nil {
		t.Fatal(err)
	}
	return front
}

func TestEveryActionFitsItsTable(t *testing.T) {
	c := config(t)
	front := frontOf(t, c)
	if err := front.Check(); err != nil {
		t.Error(err)
	}
	for _, service := range awsactions.Services() {
		if _, err := front.Handler(service.Name); err != nil && service.Name != "sts" && service.Name != "iam" {
			t.Error(err)
		}
	}
}

func TestThePageKeyIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "page.key")
	first, err := pageKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pageKey(path); err != nil || again != first || first == ([32]byte{}) {
		t.Errorf("%v, %v, then %v", err, first, again)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := pageKey(path); err != nil || other == first {
		t.Errorf("of a damaged file: %v, %v", other, err)
	}
	if _, err := pageKey(t.TempDir()); err == nil {
		t.Error("a directory is a key")
	}
}
