// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/planeclient"
)

func fakeClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestStatusTellsWhatKeepsItFromSeeing(t *testing.T) {
	s := newService(t)
	h := s.host(t.Context(), s.cfg.State.Cluster("blue"))
	if status := s.Status(t.Context()); status.Ready() || status.Clusters[0].Settled || status.PID != os.Getpid() || status.StateDir != string(s.cfg.State) {
		t.Errorf("at first: %+v", status)
	}
	h.reader = interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.MachineList); ok {
				return errors.New("no machines today")
			}
			return c.List(ctx, list, options...)
		},
	})
	if status, ok := s.Status(t.Context()).In("blue"); !ok || status.Settled || status.AsAsked() || status.Message != "no machines today" {
		t.Errorf("%+v", status)
	}
}

func newService(t *testing.T) *Service {
	t.Helper()
	s, err := NewService(Config{State: newDir(t), BinDir: "/bin", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServiceNeedsItsConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {State: "/x", BinDir: "/y"}, {State: "/x", Log: slog.Default()}, {BinDir: "/y", Log: slog.Default()}} {
		if _, err := NewService(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
