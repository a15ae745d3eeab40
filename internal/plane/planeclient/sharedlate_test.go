// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

// A manager that begins while the watch lags, as after an API server was replaced, waits for what the manager before it wrote:
// its controllers would launch, reboot or route by what was so before that.
func TestAManagerWaitsForWhatTheOneBeforeWrote(t *testing.T) {
	for name, write := range map[string]func(*testing.T, client.Client){
		"made": func(t *testing.T, api client.Client) {
			t.Helper()
			if err := api.Create(t.Context(), named("i-2")); err != nil {
				t.Fatal(err)
			}
		},
		"changed": func(t *testing.T, api client.Client) {
			t.Helper()
			m := &v1alpha1.Machine{}
			if err := api.Get(t.Context(), client.ObjectKey{Name: "i-1"}, m); err != nil {
				t.Fatal(err)
			}
			m.Labels = map[string]string{"written": "before"}
			if err := api.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func(t *testing.T, api client.Client) {
			t.Helper()
			if err := api.Delete(t.Context(), named("i-1")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			defer group.Wait()
			defer cancel()
			var lag sync.RWMutex // held while the watch lags
			fake := plane(t, new(atomic.Int32))
			api := unstreamed{interceptor.NewClient(fake, interceptor.Funcs{
				Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
					from, err := c.Watch(ctx, list, opts...)
					if err != nil {
						return nil, err
					}
					return watch.Filter(from, func(e watch.Event) (watch.Event, bool) {
						lag.RLock()
						defer lag.RUnlock()
						return e, true
					}), nil
				},
			})}
			if err := fake.Create(ctx, named("i-1")); err != nil {
				t.Fatal(err)
			}
			shared, err := NewShared(api)
			if err != nil {
				t.Fatal(err)
			}
			run := func() toolscache.SharedIndexInformer {
				made := shared.newInformer(nil, &v1alpha1.Machine{}, 0, nil)
				group.Go(func() { made.RunWithContext(ctx) })
				return made
			}
			first := run()
			group.Go(func() { shared.Run(ctx) })
			if !toolscache.WaitForCacheSync(ctx.Done(), first.HasSynced) {
				t.Fatal("the machines were not listed")
			}
			lag.Lock()
			catchesUp := sync.OnceFunc(lag.Unlock)
			defer catchesUp()
			write(t, fake)
			second := run()
			for range 10 {
				if second.HasSynced() {
					t.Error("a manager begins by what was so before the last write")
					break
				}
				<-time.After(2 * catchUpAgain)
			}
			if !first.HasSynced() {
				t.Error("a manager that runs does not any more")
			}
			catchesUp()
			if !toolscache.WaitForCacheSync(ctx.Done(), second.HasSynced) {
				t.Fatal("the manager does not begin")
			}
			var now v1alpha1.MachineList
			if err := fake.List(ctx, &now); err != nil {
				t.Fatal(err)
			}
			if !has(second.GetStore(), &now) || len(second.GetStore().List()) != len(now.Items) {
				t.Errorf("the copy has %d machines, want %d", len(second.GetStore().List()), len(now.Items))
			}
		})
	}
}

// A copy with objects that are newer than a list is as new as the list.
func TestHas(t *testing.T) {
	at := func(name, version string) v1alpha1.Machine {
		return v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	listed := &v1alpha1.MachineList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []v1alpha1.Machine{at("i-1", "5"), at("i-2", "9")}}
	for name, c := range map[string]struct {
		copied []v1alpha1.Machine
		want   bool
	}{
		"the same":             {[]v1alpha1.Machine{at("i-1", "5"), at("i-2", "9")}, true},
		"newer":                {[]v1alpha1.Machine{at("i-1", "11"), at("i-2", "9")}, true},
		"older":                {[]v1alpha1.Machine{at("i-1", "5"), at("i-2", "8")}, false},
		"lacks one":            {[]v1alpha1.Machine{at("i-1", "5")}, false},
		"a newer one more":     {[]v1alpha1.Machine{at("i-1", "5"), at("i-2", "9"), at("i-3", "11")}, true},
		"a deleted one still":  {[]v1alpha1.Machine{at("i-1", "5"), at("i-2", "9"), at("i-3", "7")}, false},
		"versions of ten more": {[]v1alpha1.Machine{at("i-1", "15"), at("i-2", "100")}, true},
	} {
		copied := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
		for i := range c.copied {
			if err := copied.Add(&c.copied[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := has(copied, listed); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
