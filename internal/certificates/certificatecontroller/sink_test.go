// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Events wait for the lease, in whatever way they are written, and none is written once it is known that there will be
// none.
func TestEventsWaitForTheLease(t *testing.T) {
	for name, lost := range map[string]bool{"it is renewed": false, "it is lost": true} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			asked, renewed := make(chan struct{}, 100), make(chan struct{})
			ctx, lose := context.WithCancel(t.Context())
			defer lose()
			broadcaster := record.NewBroadcaster()
			defer broadcaster.Shutdown()
			broadcaster.StartRecordingToSink(&sink{
				EventSink: &typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}, ctx: ctx,
				await: func(ctx context.Context) bool {
					asked <- struct{}{}
					select {
					case <-renewed:
						return true
					case <-ctx.Done():
						return false
					}
				},
			})
			recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
			about := &corev1.ObjectReference{Kind: "Node", Name: "node-1", UID: "node-1", Namespace: "default"}
			for range 2 { // the second is a patch of the first
				recorder.Event(about, corev1.EventTypeNormal, "Said", "the same")
			}
			<-asked
			if n := len(client.Actions()); n != 0 {
				t.Errorf("%d are written without the lease", n)
			}
			want := []string{"create", "patch"}
			if lost {
				want = nil
				lose()
			} else {
				close(renewed)
			}
			<-asked // the second
			deadline := time.Now().Add(time.Minute)
			for len(client.Actions()) < len(want) && time.Now().Before(deadline) {
				<-time.After(time.Millisecond)
			}
			broadcaster.Shutdown()
			var verbs []string
			for _, a := range client.Actions() {
				verbs = append(verbs, a.GetVerb())
			}
			if len(verbs) != len(want) || len(want) > 0 && (verbs[0] != want[0] || verbs[1] != want[1]) {
				t.Errorf("they are written by %v", verbs)
			}
		})
	}
}

// Update is not what the recorder does today, and waits all the same.
func TestAnUpdateOfAnEventWaits(t *testing.T) {
	s := &sink{ctx: t.Context(), await: func(context.Context) bool { return false }}
	if e, err := s.Update(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}}); err != nil || e.Name != "e" {
		t.Errorf("%v, %v", e, err)
	}
}
