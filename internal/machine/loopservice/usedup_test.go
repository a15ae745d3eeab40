// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine/local"
)

// A machine without loop devices left says so in an Event, with what to do.
func TestUsedUp(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const here, gone = "i-0000000000000000a", "i-0000000000000000b"
	plane := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: here}}).Build()
	for _, test := range []struct {
		about, machine string
		refusal        error
		want           []string
	}{
		{"all are used", here, fmt.Errorf("attaching: %w", local.ErrTooManyLoops), []string{"Warning LoopDevicesUsedUp", "128 loop devices", "losetup --detach"}},
		{"a machine that is gone", gone, local.ErrTooManyLoops, nil},
		{"another refusal", here, errors.New("it may not"), nil},
	} {
		recorder := events.NewFakeRecorder(1)
		UsedUp(plane, recorder)(t.Context(), test.machine, test.refusal)
		select {
		case got := <-recorder.Events:
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %q lacks %q", test.about, got, want)
				}
			}
			if test.want == nil {
				t.Errorf("%s: %q", test.about, got)
			}
		default:
			if test.want != nil {
				t.Errorf("%s: no Event", test.about)
			}
		}
	}
}
