// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A pod that was asked to go and does not is named long before the patience is over.
func TestPodsThatDoNotEndAreNamed(t *testing.T) {
	now := metav1.Now()
	cluster := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stuck", DeletionTimestamp: &now, Finalizers: []string{"example.com/x"}},
		Spec:       corev1.PodSpec{NodeName: nodeName},
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		var said []string
		_, err := evictAll(ctx, cluster, nodeName, func(why string) {
			said = append(said, why)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("said after %s", took)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "pod default/stuck is still on the node: give them longer") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"pod default/stuck has not ended yet"}, said); diff != "" {
			t.Errorf("said (-want +got):\n%s", diff)
		}
	})
}

func TestPodsInWords(t *testing.T) {
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}}
	got := []string{countPods(0), countPods(1), countPods(2), remaining(pods[:1], "is there", "are there"), remaining(pods, "is there", "are there")}
	if diff := cmp.Diff([]string{"0 pods", "1 pod", "2 pods", "pod default/a is there", "2 pods are there, default/a among them"}, got); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}
