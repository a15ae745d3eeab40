// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func pod(name, uid, account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-" + uid)},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ServiceAccountName: account,
			Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}}},
		},
	}
}

func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("sa-" + name)}}
}

func begun(t *testing.T, client *fake.Clientset) (*Watch, *atomic.Int32) {
	t.Helper()
	gone := &atomic.Int32{}
	w := New(client, func() { gone.Add(1) })
	if _, err := w.Find(Subject{}); !errors.Is(err, ErrNotReady) {
		t.Fatalf("before anything is known: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, w.HasSynced)
	return w, gone
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatal("it does not come about")
		case <-tick.C:
		}
	}
}

func TestFind(t *testing.T) {
	w, _ := begun(t, fake.NewClientset(pod("web", "1", "app"), pod("lost", "2", "none"), account("app")))
	good := Subject{Namespace: "a", Pod: "web", PodUID: "uid-1", ServiceAccount: "app", ServiceAccountUID: "sa-app"}
	for name, c := range map[string]struct {
		change func(*Subject)
		want   string // empty: found
	}{
		"as it is":                        {func(*Subject) {}, ""},
		"any UID of the account":          {func(s *Subject) { s.ServiceAccountUID = "" }, ""},
		"another pod":                     {func(s *Subject) { s.Pod = "db" }, "a/db is not in the cluster"},
		"another namespace":               {func(s *Subject) { s.Namespace = "b" }, "b/web is not in the cluster"},
		"no UID":                          {func(s *Subject) { s.PodUID = "" }, "is not in the cluster"},
		"a pod that was made again":       {func(s *Subject) { s.PodUID = "uid-0" }, "made again"},
		"another account":                 {func(s *Subject) { s.ServiceAccount = "other" }, "has the service account app, not other"},
		"an account that was made again":  {func(s *Subject) { s.ServiceAccountUID = "sa-0" }, "made again"},
		"an account that is not there":    {func(s *Subject) { s.Pod, s.PodUID, s.ServiceAccount = "lost", "uid-2", "none" }, "its service account a/none is not in the cluster"},
		"a path in the name of a pod":     {func(s *Subject) { s.Namespace, s.Pod = "", "a/web" }, "is not in the cluster"},
		"a path in the name of a account": {func(s *Subject) { s.ServiceAccount = "../a/app" }, "has the service account app"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			c.change(&s)
			found, err := w.Find(s)
			switch {
			case c.want == "" && (err != nil || found.Node != "node-1" || found.HostNetwork):
				t.Errorf("%+v, %v", found, err)
			case c.want != "" && (!errors.Is(err, ErrNoPod) || !strings.Contains(err.Error(), c.want) || found != (Pod{})):
				t.Errorf("%+v, %v; want %q", found, err, c.want)
			}
		})
	}
	for _, kept := range w.pods.Store().List() {
		if len(kept.(*corev1.Pod).Spec.Containers) != 0 {
			t.Error("the environment of a pod is kept")
		}
	}
}

func TestWhatIsGoneIsNotFound(t *testing.T) {
	client := fake.NewClientset(pod("web", "1", "app"), pod("api", "2", "app"), account("app"))
	w, gone := begun(t, client)
	web := Subject{Namespace: "a", Pod: "web", PodUID: "uid-1", ServiceAccount: "app"}
	api := Subject{Namespace: "a", Pod: "api", PodUID: "uid-2", ServiceAccount: "app"}
	if err := client.CoreV1().Pods("a").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { _, err := w.Find(web); return errors.Is(err, ErrNoPod) })
	eventually(t, func() bool { return gone.Load() == 1 })
	if _, err := w.Find(api); err != nil {
		t.Error(err)
	}
	if err := client.CoreV1().ServiceAccounts("a").Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { _, err := w.Find(api); return errors.Is(err, ErrNoPod) })
	eventually(t, func() bool { return gone.Load() == 2 })
	if _, err := client.CoreV1().Pods("a").Create(t.Context(), pod("new", "3", "app"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ServiceAccounts("a").Create(t.Context(), account("app"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		_, err := w.Find(Subject{Namespace: "a", Pod: "new", PodUID: "uid-3", ServiceAccount: "app"})
		return err == nil
	})
	for _, kept := range w.pods.Store().List() {
		if len(kept.(*corev1.Pod).Spec.Containers) != 0 {
			t.Error("the environment of a pod that came later is kept")
		}
	}
}
