// SPDX-License-Identifier: Apache-2.0

package watchretrytest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/internal/platform/watchretry/watchretrytest"
)

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestAChangeBetweenListAndWatch(t *testing.T) {
	api := watchretrytest.Follow(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secret("a")).Build())
	var listed [2]corev1.SecretList
	for i := range listed {
		if err := api.List(t.Context(), &listed[i], &client.ListOptions{Raw: &metav1.ListOptions{}}); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), secret([]string{"b", "c"}[i])); err != nil {
			t.Fatal(err)
		}
	}
	// The later list's watch is asked for first: each is given its own.
	for i, want := range map[int][]string{1: {"c"}, 0: {"b", "c"}} {
		if n := len(listed[i].Items); n != i+1 {
			t.Errorf("list %d has %d secrets", i, n)
		}
		w, err := api.Watch(t.Context(), &corev1.SecretList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: listed[i].ResourceVersion}})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			select {
			case e := <-w.ResultChan():
				if got := e.Object.(*corev1.Secret).Name; e.Type != watch.Added || got != name {
					t.Errorf("watch %d has %s of %s, and not of %s", i, e.Type, got, name)
				}
			default:
				t.Errorf("watch %d has nothing of %s", i, name)
			}
		}
		w.Stop()
	}
}
