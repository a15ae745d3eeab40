// SPDX-License-Identifier: Apache-2.0

package hostnode

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
		if err == nil || !strings.Contains(err.Error(), "1 pods are still on the node, default/stuck among them") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"1 pods have not ended yet, default/stuck among them"}, said); diff != "" {
			t.Errorf("said (-want +got):\n%s", diff)
		}
	})
}
