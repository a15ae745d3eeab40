// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	fcache "k8s.io/client-go/tools/cache/testing"
)

// rights are those to read ConfigMaps, which come and go.
type rights struct {
	*fcache.FakeControllerSource
	mu         sync.Mutex
	list, look error // why it is not allowed
}

func (r *rights) set(list, look error) {
	r.mu.Lock()
	r.list, r.look = list, look
	r.mu.Unlock()
	r.ResetWatch() // as an API server ends each watch after some minutes
}

func (r *rights) now() (list, look error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list, r.look
}

func (r *rights) List(o metav1.ListOptions) (runtime.Object, error) {
	if err, _ := r.now(); err != nil {
		return nil, err
	}
	return r.FakeControllerSource.List(o)
}

func (r *rights) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if _, err := r.now(); err != nil {
		return nil, err
	}
	return r.FakeControllerSource.Watch(o)
}

func watchFailures(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range gathered {
		if family.GetName() == "aws_iam_authenticator_configmap_watch_failures_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("nobody counts watches that fail")
	return 0
}

func TestARightThatIsTakenAwayIsToldOnceAndOnceWhenItIsBack(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "aws-auth", errors.New("RBAC"))
	for _, c := range []struct {
		name       string
		list, look error
		told       bool
	}{
		{"all", forbidden, forbidden, true},
		{"watch only", nil, forbidden, true},
		{"the server is away", errors.New("connection refused"), errors.New("connection refused"), true},
		{"a watch that is too old", nil, apierrors.NewResourceExpired("too old"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rights{FakeControllerSource: fcache.NewFakeControllerSource()}
				r.Add(awsAuth("- userarn: " + alice + "\n  username: first\n"))
				var log logs
				registry := prometheus.NewRegistry()
				s, err := NewSources(SourcesConfig{Metrics: NewMetrics(registry), Logger: slog.New(slog.NewTextHandler(&log, nil)), AWSAuth: r})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); s.Run(ctx) }()
				defer func() { cancel(); <-done; r.Shutdown() }()
				is := func(want string, ended, again int) {
					t.Helper()
					synctest.Wait()
					if got := becomes(t, s, alice); got != want {
						t.Errorf("alice is %q, want %q", got, want)
					}
					if e, a := strings.Count(log.String(), "are not followed"), strings.Count(log.String(), "followed again"); e != ended || a != again {
						t.Errorf("told %d times that it ended and %d that it goes on, want %d and %d:\n%s", e, a, ended, again, log.String())
					}
				}
				time.Sleep(time.Minute) //nolint:forbidigo // of the bubble
				is("first", 0, 0)
				for n, name := range []string{"second", "third"} {
					before := map[int]string{0: "first", 1: "second"}[n]
					told, failures := 0, watchFailures(t, registry)
					r.set(c.list, c.look)
					time.Sleep(time.Hour) //nolint:forbidigo // of the bubble
					if c.told {
						told = 1
						is(before, n+1, n)
						if more := watchFailures(t, registry) - failures; more < 100 {
							t.Errorf("in an hour it was asked %.0f times", more)
						}
					}
					r.Modify(awsAuth("- userarn: " + alice + "\n  username: " + name + "\n"))
					r.set(nil, nil)
					time.Sleep(time.Minute) //nolint:forbidigo // of the bubble
					is(name, (n+1)*told, (n+1)*told)
				}
			})
		})
	}
}
