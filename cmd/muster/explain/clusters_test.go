// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

// another is a cluster beside the one that all tests have.
func another(name string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: clitest.MadeBefore(name, time.Hour)}
	c.Namespace, c.Spec.Name = v1alpha1.ClusterSlug(name), name
	ready := condition("True", "Healthy", "")
	c.Status.Conditions = append(c.Status.Conditions, ready)
	return c
}

// Where there are several clusters, each command that shows evidence says which one; where there is one, none does.
func TestCommandsNameTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		more []client.Object
		want bool
	}{
		"one":     {nil, false},
		"several": {[]client.Object{another("away")}, true},
	} {
		b := world(t, append(test.more, newRefused())...)
		if got := run(t, b, "machine", refusedMachine); got != 1 {
			t.Fatalf("%s: exit code %d: %s", name, got, b.Err.String())
		}
		looks := 0
		for line := range strings.Lines(b.Out.String()) {
			_, look, ok := strings.Cut(strings.TrimSpace(line), "see: ")
			if !ok {
				continue
			}
			if looks++; strings.Contains(look, " --cluster home") != test.want {
				t.Errorf("%s: %q", name, look)
			}
		}
		if looks == 0 {
			t.Errorf("%s: no command shows the evidence:\n%s", name, b.Out.String())
		}
	}
}

// Clusters are asked side by side: none answers before all are asked, whether for everything or for one object.
func TestClustersAreAskedTogether(t *testing.T) {
	const clusters = 4
	for _, args := range [][]string{nil, {"pod", "shop/web"}} {
		var more []client.Object
		for i := range clusters - 1 {
			more = append(more, another(fmt.Sprintf("away-%d", i)))
		}
		b := world(t, more...)
		var asked sync.WaitGroup
		asked.Add(clusters)
		hangs := func(ctx context.Context, once *sync.Once) error {
			once.Do(asked.Done)
			done := make(chan struct{})
			go func() { asked.Wait(); close(done) }()
			select {
			case <-done:
				return errors.New("it hung")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		management := b.Planes.Management
		b.Planes.Cluster = func(o *terminal.Options) (*kinds.Client, error) {
			p, err := management(o)
			if err != nil {
				return nil, err
			}
			once := new(sync.Once)
			p.WithWatch = interceptor.NewClient(b.Client, interceptor.Funcs{
				List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
					return hangs(ctx, once)
				},
				Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					return hangs(ctx, once)
				},
			})
			return p, nil
		}
		run(t, b, args...)
		if text := b.Out.String() + b.Err.String(); !strings.Contains(text, "it hung") || strings.Contains(text, "deadline") { // in turn, the first would wait until its end
			t.Errorf("%v: %s", args, text)
		}
	}
}
