// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

// plane is a management plane in memory that counts watches.
func plane(t *testing.T, watches *atomic.Int32) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return unstreamed{interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			watches.Add(1)
			return c.Watch(ctx, list, opts...)
		},
	})}
}

// unstreamed is a client whose lists do not come as watches, which a fake one does not do.
type unstreamed struct{ client.WithWatch }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

func named(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}}}
}

// heard remembers which objects a handler was told of.
type heard struct{ names chan string }

func (h heard) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { h.names <- o.(*v1alpha1.Machine).Name }}
}

func (h heard) want(t *testing.T, name string) {
	t.Helper()
	select {
	case got := <-h.names:
		if got != name {
			t.Errorf("heard of %s, want %s", got, name)
		}
	case <-time.After(time.Minute):
		t.Fatalf("did not hear of %s", name)
	}
}

// Two managers, one after the other's end: one watch of the management plane, and each hears as long as it runs.
func TestSharedMachines(t *testing.T) {
	defer goleak.VerifyNone(t)
	var watches atomic.Int32
	api := plane(t, &watches)
	shared, err := NewShared(api)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { shared.Run(ctx) })

	begin := func() (toolscache.SharedIndexInformer, heard, func()) {
		t.Helper()
		made := shared.newInformer(nil, &v1alpha1.Machine{}, time.Hour, nil)
		h := heard{make(chan string, 10)}
		if _, err := made.AddEventHandler(h.handler()); err != nil {
			t.Fatal(err)
		}
		running, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); made.RunWithContext(running) }()
		return made, h, func() { end(); <-ended }
	}
	first, firstHeard, endFirst := begin()
	_, secondHeard, endSecond := begin()
	defer endSecond()
	if !toolscache.WaitForCacheSync(ctx.Done(), first.HasSynced) {
		t.Fatal("the machines were not listed")
	}
	create := func(name string) {
		t.Helper()
		if err := api.Create(ctx, named(name)); err != nil {
			t.Fatal(err)
		}
	}
	create("i-1")
	firstHeard.want(t, "i-1")
	secondHeard.want(t, "i-1")
	endFirst()
	if !first.IsStopped() || shared.informer.IsStopped() {
		t.Errorf("stopped: the view %t, the watch %t; want the view alone", first.IsStopped(), shared.informer.IsStopped())
	}
	late := heard{make(chan string, 10)}
	if _, err := first.AddEventHandler(late.handler()); err != nil {
		t.Fatal(err)
	}
	create("i-2")
	secondHeard.want(t, "i-2")
	_, third, endThird := begin() // it hears what there is
	defer endThird()
	for range 2 {
		if name := <-third.names; name != "i-1" && name != "i-2" {
			t.Errorf("heard of %s", name)
		}
	}
	if len(firstHeard.names) != 0 {
		t.Error("a manager that has ended hears of changes")
	}
	if n := watches.Load(); n != 1 {
		t.Errorf("%d watches, want 1", n)
	}
	o, there, err := first.GetStore().GetByKey("i-1")
	if err != nil || !there || o.(*v1alpha1.Machine).ManagedFields != nil {
		t.Errorf("the copy is %+v, there %t: %v; want it without managed fields", o, there, err)
	}
}

// Handlers can be taken off one by one, and other kinds have informers of their own.
func TestSharedIsOfMachinesAlone(t *testing.T) {
	shared, err := NewShared(plane(t, new(atomic.Int32)))
	if err != nil {
		t.Fatal(err)
	}
	if _, is := shared.newInformer(&toolscache.ListWatch{}, &corev1.Secret{}, 0, nil).(*view); is {
		t.Error("Secrets are read by the watch of Machines")
	}
	made, is := shared.newInformer(nil, &v1alpha1.Machine{}, 0, nil).(*view)
	if !is {
		t.Fatal("Machines have an informer of their own")
	}
	added, err := made.AddEventHandlerWithResyncPeriod(toolscache.ResourceEventHandlerFuncs{}, time.Hour)
	if err != nil || len(made.handlers) != 1 {
		t.Fatalf("%d handlers: %v", len(made.handlers), err)
	}
	if err := made.RemoveEventHandler(added); err != nil || len(made.handlers) != 0 {
		t.Errorf("%d handlers are left: %v", len(made.handlers), err)
	}
}
