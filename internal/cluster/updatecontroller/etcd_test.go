// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/etcdspace"
)

// An update of etcd changes no object: it says what was done. An etcd that does not answer is asked again for a while,
// and one that is full of objects fails at once.
func TestUpdateOfEtcd(t *testing.T) {
	t.Parallel()
	away := errors.New("etcd is away")
	for name, c := range map[string]struct {
		with  func(*v1alpha1.Update)
		err   error
		after time.Duration
		asked bool
		phase v1alpha1.UpdatePhase
		says  string
	}{
		"done":             {nil, nil, 0, true, v1alpha1.UpdateSuccessful, "300 MiB were freed"},
		"away":             {nil, away, 0, true, v1alpha1.UpdateInProgress, "etcd is asked again: etcd is away"},
		"away for long":    {nil, away, freeing, true, v1alpha1.UpdateFailed, "etcd is away"},
		"full of objects":  {nil, &etcdspace.FullError{}, 0, true, v1alpha1.UpdateFailed, "Delete objects"},
		"it was cancelled": {func(u *v1alpha1.Update) { u.Annotations = map[string]string{v1alpha1.AnnotationCancel: "true"} }, nil, 0, false, v1alpha1.UpdateCancelled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpdate("u1", v1alpha1.UpdateChange{DefragmentEtcd: true})
			u.Spec.Type = v1alpha1.UpdateEtcd
			if c.with != nil {
				c.with(u)
			}
			w := newWorld(t, newCluster(), u)
			w.now = start.Add(c.after)
			asked := false
			r := &updates{api: w.api, now: func() time.Time { return w.now }, freeEtcd: func(_ context.Context, namespace string) (string, error) {
				asked = namespace == "blue"
				return "300 MiB were freed", c.err
			}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(u)}); err != nil {
				t.Fatal(err)
			}
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				t.Fatal(err)
			}
			says := u.Status.Message
			if len(u.Status.Errors) > 0 {
				says = u.Status.Errors[0].ErrorMessage
			}
			if asked != c.asked || u.Phase() != c.phase || !strings.Contains(says, c.says) {
				t.Errorf("asked %v, %s: %q", asked, u.Phase(), says)
			}
			cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}}
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || len(cluster.Annotations) > 0 {
				t.Errorf("the cluster was changed: %v, %v", cluster.Annotations, err)
			}
		})
	}
}
