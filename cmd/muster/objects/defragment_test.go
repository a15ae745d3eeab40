// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/etcdspace"
)

// Figures come before anything is done, and what is not worth a pause makes no Update.
func TestDefragment(t *testing.T) {
	const mib = 1 << 20
	unused := etcdspace.Space{Size: 500 * mib, InUse: 100 * mib, Quota: 4096 * mib}
	for name, c := range map[string]struct {
		space  etcdspace.Space
		args   []string
		ends   v1alpha1.UpdateStatus
		says   string
		fails  string
		update bool
	}{
		"not worth it": {etcdspace.Space{Size: 50 * mib, InUse: 20 * mib, Quota: 4096 * mib}, nil, v1alpha1.UpdateStatus{}, "its file has 50 MiB, 20 MiB of them in use, of a quota of 4096 MiB. A defragmentation is not worth its pause", "", false},
		"to be told":   {unused, []string{"--dry-run"}, v1alpha1.UpdateStatus{}, "Defragmenting it keeps etcd and the API from answering for up to 3s", "", false},
		"done":         {unused, nil, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, Message: "400 MiB were freed"}, "for up to 3s\n400 MiB were freed\n", "", true},
		"the alarm":    {etcdspace.Space{Size: 4096 * mib, InUse: 100 * mib, Quota: 4096 * mib, NoSpace: true}, []string{"--cluster", "home"}, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, Message: "the alarm NOSPACE is disarmed"}, "the alarm NOSPACE is disarmed\n", "", true},
		"failed":       {unused, nil, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed, Errors: []v1alpha1.UpdateError{{ErrorMessage: "nothing is left of the quota"}}}, "for up to 3s\n", "nothing is left of the quota", true},
		"cancelled":    {unused, nil, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateCancelled}, "for up to 3s\n", "is Cancelled", true},
		"slow":         {unused, []string{"--timeout", "20ms"}, v1alpha1.UpdateStatus{Message: "etcd is asked again"}, "for up to 3s\n", "it goes on: muster get updates (etcd is asked again)", true},
		"no such":      {unused, []string{"--cluster", "other"}, v1alpha1.UpdateStatus{}, "", `--cluster: cluster "other" not found`, false},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			b := clitest.NewBench(t, interceptor.Funcs{
				Create: func(ctx context.Context, api client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					u, ok := object.(*v1alpha1.Update)
					if !ok || u.Spec.ClusterName != "home" || u.Namespace != "home" || u.Spec.Type != v1alpha1.UpdateEtcd || !u.Spec.Change.DefragmentEtcd {
						t.Errorf("made %+v", object)
					}
					made++
					u.Name, u.Status = "defragment-1", c.ends
					return api.Create(ctx, u, opts...)
				},
			}, clitest.World()...)
			d := &defragmentCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, space: func(_ context.Context, _ *terminal.Options, namespace string) (etcdspace.Space, error) {
				if namespace != "home" {
					t.Errorf("asked for the space of %q", namespace)
				}
				return c.space, nil
			}}
			err := b.Run(t.Context(), d.command(), c.args...)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if !strings.Contains(b.Out.String(), c.says) || (made == 1) != c.update {
				t.Errorf("%d updates, and it says %q, want %q", made, b.Out.String(), c.says)
			}
		})
	}
}

// aManagementEtcd is the service, as this command asks it.
type aManagementEtcd struct {
	space etcdspace.Space
	slow  bool
	freed int
}

func (e *aManagementEtcd) Status(context.Context) (servicestatus.Status, error) {
	return servicestatus.Status{Etcd: e.space}, nil
}

func (e *aManagementEtcd) FreeManagementEtcd(ctx context.Context) (string, error) {
	if e.freed++; e.slow {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "the alarm NOSPACE is disarmed", nil
}

// The management plane's etcd is freed by the service itself: it may have no room for an Update.
func TestDefragmentManagement(t *testing.T) {
	const mib = 1 << 20
	full := etcdspace.Space{Size: 2048 * mib, InUse: 100 * mib, Quota: 2048 * mib, NoSpace: true}
	for name, c := range map[string]struct {
		etcd  aManagementEtcd
		args  []string
		says  string
		fails string
		freed int
	}{
		"not asked yet": {aManagementEtcd{}, nil, "", "has not said yet", 0},
		"not worth it":  {aManagementEtcd{space: etcdspace.Space{Size: 50 * mib, InUse: 20 * mib, Quota: 2048 * mib}}, nil, "etcd of the management plane: its file has 50 MiB", "", 0},
		"to be told":    {aManagementEtcd{space: full}, []string{"--dry-run"}, "for up to 3s", "", 0},
		"the alarm":     {aManagementEtcd{space: full}, nil, "the alarm NOSPACE is disarmed\n", "", 1},
		"slow":          {aManagementEtcd{space: full, slow: true}, []string{"--timeout", "20ms"}, "", "--timeout: etcd is not done after 20ms", 1},
		"both":          {aManagementEtcd{space: full}, []string{"--cluster", "home"}, "", "[cluster management]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
			d := &defragmentCommand{Options: b.O, planes: b.Planes, management: func(*terminal.Options) (managementEtcd, error) { return &c.etcd, nil }}
			err := b.Run(t.Context(), d.command(), append(c.args, "--management")...)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if !strings.Contains(b.Out.String(), c.says) || c.etcd.freed != c.freed {
				t.Errorf("freed %d times, and it says %q, want %q", c.etcd.freed, b.Out.String(), c.says)
			}
		})
	}
}
