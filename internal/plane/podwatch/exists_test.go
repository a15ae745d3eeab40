// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// questions counts what is asked of the API server, which fails on demand.
func questions(client *fake.Clientset) (asked *atomic.Int32, fail *atomic.Pointer[error]) {
	asked, fail = &atomic.Int32{}, &atomic.Pointer[error]{}
	client.PrependReactor("get", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		if err := fail.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	return asked, fail
}

// interrupt makes the watch take itself for interrupted for so long.
func (w *Watch) interrupt(since time.Time) {
	w.open.mu.Lock()
	defer w.open.mu.Unlock()
	w.open.opened, w.open.since = w.open.opened-watched, since
}

var aSubject = Subject{Namespace: "a", Pod: "web", PodUID: "uid-1", ServiceAccount: "app", ServiceAccountUID: "sa-app"}

func watching(t *testing.T, w *Watch) {
	t.Helper()
	eventually(t, func() bool { return !w.open.interrupted(time.Now().Add(time.Hour)) })
}

func TestExists(t *testing.T) {
	client := fake.NewClientset(pod("web", "1", "app"), account("app"))
	asked, _ := questions(client)
	w, _ := begun(t, client)
	watching(t, w)
	alone := Subject{Namespace: "a", ServiceAccount: "app", ServiceAccountUID: "sa-app"}
	for name, c := range map[string]struct {
		subject Subject
		there   bool
	}{
		"a pod":                   {aSubject, true},
		"a service account alone": {alone, true},
		"an account of before":    {Subject{Namespace: "a", ServiceAccount: "app", ServiceAccountUID: "sa-0"}, false},
		"an account elsewhere":    {Subject{Namespace: "b", ServiceAccount: "app", ServiceAccountUID: "sa-app"}, false},
		"a pod of before":         {Subject{Namespace: "a", Pod: "web", PodUID: "uid-0", ServiceAccount: "app", ServiceAccountUID: "sa-app"}, false},
	} {
		if err := w.Exists(c.subject, time.Time{}); (err == nil) != c.there || err != nil && !errors.Is(err, ErrNoPod) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the API server was asked %d times", asked.Load())
	}
	began := time.Now()
	if err := client.CoreV1().Pods("a").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return errors.Is(w.Exists(aSubject, time.Time{}), ErrNoPod) })
	if took := time.Since(began); took > time.Second {
		t.Errorf("a deletion is known after %s", took)
	}
}

// The API server is asked about a pod that the watch has not heard of, if its token is young, and not by a flood.
func TestANewPodIsAskedAbout(t *testing.T) {
	client := fake.NewClientset(account("app"))
	asked, _ := questions(client)
	w, _ := begun(t, client)
	watching(t, w)
	if err := w.Exists(aSubject, time.Now().Add(-time.Minute)); !errors.Is(err, ErrNoPod) || asked.Load() != 0 {
		t.Errorf("of an old token: %v, asked %d times", err, asked.Load())
	}
	if err := w.Exists(aSubject, time.Now()); !errors.Is(err, ErrNoPod) || asked.Load() != 2 {
		t.Errorf("of a young token: %v, asked %d times", err, asked.Load())
	}
	for n := range 200 {
		s := aSubject
		s.Pod = "web-" + strconv.Itoa(n)
		if err := w.Exists(s, time.Now()); !errors.Is(err, ErrNoPod) {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n > 2*(asksAtOnce+asksPerSecond) {
		t.Errorf("200 tokens had the API server asked %d times", n)
	}
}

// While the watch is interrupted, the API server says what there is; while that is away, nothing changes.
func TestAnInterruptedWatch(t *testing.T) {
	client := fake.NewClientset(pod("web", "1", "app"), account("app"))
	asked, fail := questions(client)
	w, _ := begun(t, client)
	watching(t, w)
	w.interrupt(time.Now())
	if err := w.Exists(aSubject, time.Time{}); err != nil || asked.Load() != 0 {
		t.Errorf("at once: %v, asked %d times", err, asked.Load())
	}
	w.interrupt(time.Now().Add(-time.Minute))
	for name, c := range map[string]struct {
		fails error
		there bool
	}{
		"it answers": {nil, true}, "it is away": {errors.New("connection refused"), true}, "it starts": {apierrors.NewServiceUnavailable("starting"), true},
		"it forbids": {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", nil), false},
		"it is gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web"), false},
	} {
		w.direct.all.Clear()
		fail.Store(nil)
		if c.fails != nil {
			fail.Store(&c.fails)
		}
		if err := w.Exists(aSubject, time.Time{}); (err == nil) != c.there {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := asked.Load()
	_ = w.Exists(aSubject, time.Time{})
	if asked.Load() != before {
		t.Error("the API server is asked twice in a second")
	}
}
