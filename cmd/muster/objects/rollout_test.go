// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
)

func TestRolloutUndo(t *testing.T) {
	ended := new(metav1.NewTime(time.Unix(9, 0)))
	for name, c := range map[string]struct {
		before *v1alpha1.NodeGroupBefore
		args   []string
		ends   v1alpha1.UpdateStatus
		says   string
		fails  string
	}{
		"asked for":     {&v1alpha1.NodeGroupBefore{Version: "1.35"}, nil, v1alpha1.UpdateStatus{}, "goes back to what it was before u1: update undo-1\n", ""},
		"waited for":    {&v1alpha1.NodeGroupBefore{Version: "1.35"}, []string{"--wait"}, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, FinishedAt: ended}, "is of 1.35 again, after ", ""},
		"failed":        {&v1alpha1.NodeGroupBefore{Version: "1.35"}, []string{"--wait"}, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed, FinishedAt: ended, Errors: []v1alpha1.UpdateError{{ErrorCode: "PodEvictionFailure", ErrorMessage: "a budget"}}}, "goes back", "a budget"},
		"nothing known": {nil, nil, v1alpha1.UpdateStatus{}, "", "no update has rolled it out"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := clitest.World()
			group := ""
			for _, o := range objects {
				if g, ok := o.(*v1alpha1.NodeGroup); ok && group == "" {
					group, g.Spec.Rollout = g.Spec.Name, &v1alpha1.NodeGroupRollout{ID: "u1", Before: c.before}
				}
			}
			b := clitest.NewBench(t, interceptor.Funcs{
				Create: func(ctx context.Context, api client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					u := object.(*v1alpha1.Update)
					if asked := u.Spec.Change.Rollout; u.Spec.NodeGroup != group || u.Spec.Type != v1alpha1.UpdateVersion || asked == nil || !asked.Undo {
						t.Errorf("made %+v", u.Spec)
					}
					u.Name, u.Status = "undo-1", c.ends
					return api.Create(ctx, u, opts...)
				},
			}, objects...)
			err := b.Run(t.Context(), (&undoCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond}).ofNodeGroup(), append([]string{group}, c.args...)...)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if !strings.Contains(b.Out.String(), c.says) {
				t.Errorf("it says %q, want %q", b.Out.String(), c.says)
			}
		})
	}
}
