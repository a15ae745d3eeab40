// SPDX-License-Identifier: Apache-2.0

package watchretry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// starting answers as an API server does that was just started, and then as one that serves.
type starting struct {
	overloaded bool // or rather as one that has too much to do
	asked      atomic.Int32
	heard      func() // if not nil, called at each request
}

func (s *starting) refusal(asked int32) error {
	switch asked {
	case 1:
		err := apierrors.NewServiceUnavailable("the request has been made before all known HTTP paths have been installed, please try again")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 5}
		return err
	case 2:
		return apierrors.NewTooManyRequests("storage is (re)initializing", 5)
	}
	return nil
}

func (s *starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refusal := s.refusal(s.asked.Add(1))
	if s.heard != nil {
		s.heard()
	}
	if s.overloaded {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return
	}
	var status apierrors.APIStatus
	if errors.As(refusal, &status) {
		said := status.Status()
		said.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(int(said.Code))
		_ = json.NewEncoder(w).Encode(said)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}})
	}
}

// maps is a client of a server, and what this package makes of it.
func maps(t *testing.T, s http.Handler) (kubernetes.Interface, cache.ListerWatcherWithContext) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	Wrap(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all := client.CoreV1().ConfigMaps("")
	return client, cache.ToListerWatcherWithContext(New(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	}))
}

// A server that was just started asks for five seconds and is ready after less: list and watch are answered soon all
// the same.
func TestAServerThatStartsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(cache.ListerWatcherWithContext, context.Context) error{
		"list": func(l cache.ListerWatcherWithContext, ctx context.Context) error {
			_, err := l.ListWithContext(ctx, metav1.ListOptions{})
			return err
		},
		"watch": func(l cache.ListerWatcherWithContext, ctx context.Context) error {
			w, err := l.WatchWithContext(ctx, metav1.ListOptions{})
			if err == nil {
				w.Stop()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &starting{}
			_, l := maps(t, s)
			began := time.Now()
			if err := request(l, t.Context()); err != nil || s.asked.Load() != 3 {
				t.Errorf("asked %d times, %v", s.asked.Load(), err)
			}
			if took := time.Since(began); took >= 5*time.Second { // that the server asks for
				t.Errorf("answered after %s", took)
			}
		})
	}
}

// For requests that are not retried here, and for a server that has too much to do, the client waits as client-go does.
func TestOthersAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		overloaded bool
		ask        func(kubernetes.Interface, cache.ListerWatcherWithContext, context.Context) error
	}{
		"another request of the client": {false, func(c kubernetes.Interface, _ cache.ListerWatcherWithContext, ctx context.Context) error {
			_, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
			return err
		}},
		"too many requests": {true, func(_ kubernetes.Interface, l cache.ListerWatcherWithContext, ctx context.Context) error {
			_, err := l.ListWithContext(ctx, metav1.ListOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &starting{overloaded: c.overloaded, heard: func() { time.AfterFunc(300*time.Millisecond, cancel) }}
			client, l := maps(t, s)
			if err := c.ask(client, l, ctx); err == nil || s.asked.Load() != 1 {
				t.Errorf("asked %d times, %v", s.asked.Load(), err)
			}
		})
	}
}
