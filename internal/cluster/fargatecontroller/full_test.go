// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Twenty pods that the host has no room for wait for ten minutes with the reason. Nothing is launched, each says so once, and
// the number of questions to the management plane does not grow with that of the pods.
func TestManyPodsWithoutRoom(t *testing.T) {
	const count = 20
	w := newWorld(t)
	w.settle()
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}
	w.memory = 1 << 30
	next := map[string]time.Time{}
	for n := range count {
		name := fmt.Sprint("p", n)
		w.run(name, "uid-of-"+name, nil)
		next[name] = noon
	}
	w.asked = 0
	for second := range 600 {
		w.now = noon.Add(time.Duration(second) * time.Second)
		for name, at := range next {
			if at.After(w.now) {
				continue
			}
			result, err := w.pods.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "jobs", Name: name}})
			if err != nil || result.RequeueAfter <= 0 {
				t.Fatalf("pod %s: %+v, %v", name, result, err)
			}
			next[name] = w.now.Add(result.RequeueAfter)
		}
	}
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines were made", n)
	}
	if n := len(w.events.Events); n != count {
		t.Errorf("%d Events about %d pods", n, count)
	}
	if most := 2 * 600 / int(refusedAgain.Seconds()); w.asked > most {
		t.Errorf("the management plane was asked %d times in ten minutes, want %d at most", w.asked, most)
	}
	if says := why(w.pod("p7")); !strings.Contains(says, "InsufficientInstanceCapacity: the host has no room for a machine of 0.25vCPU 0.5GB") {
		t.Errorf("a pod says %q", says)
	}
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}
	w.memory, w.now = 24<<30, w.now.Add(refusedAgain)
	w.settle()
	if len(w.machines()) == 0 {
		t.Error("no pod has a machine though there is room")
	}
}
