// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
	"muster.dev/muster/internal/machine/terminated"
)

// terminate ends machines as their controller does.
func (w *world) terminate(machines ...v1alpha1.Machine) {
	w.t.Helper()
	for i := range machines {
		m := &machines[i]
		if err := terminated.Remember(w.t.Context(), w.api, m, time.Now()); err != nil {
			w.t.Fatal(err)
		}
		m.Finalizers = nil
		if err := w.api.Update(w.t.Context(), m); err != nil {
			w.t.Fatal(err)
		}
		if err := w.api.Delete(w.t.Context(), m); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// A request that is sent again makes no instance in the place of one that was terminated meanwhile, and its answer has that one, too.
func TestATokenMakesNothingInThePlaceOfATerminatedInstance(t *testing.T) {
	for action, request := range map[string]string{
		"RunInstances": run + "&MaxCount=3&ClientToken=once&SubnetId=" + subnetA,
		"CreateFleet":  fleetRequest(3, "on-demand", "t3.small") + "&ClientToken=once",
	} {
		t.Run(action, func(t *testing.T) {
			w := runWorld(t)
			w.ask(request, 200)
			all := w.machines()
			if len(all) != 3 {
				t.Fatalf("%d machines", len(all))
			}
			w.terminate(all[1])
			answer := w.ask(request, 200)
			left := w.machines()
			if len(left) != 2 || slices.ContainsFunc(left, func(m v1alpha1.Machine) bool { return m.Name != all[0].Name && m.Name != all[2].Name }) {
				t.Errorf("there are %d machines, want the two that were left", len(left))
			}
			for _, m := range all {
				if strings.Count(answer, m.Name) != 1 {
					t.Errorf("the answer does not have %s once: %s", m.Name, answer)
				}
			}
			if n := strings.Count(answer, "<name>terminated</name>"); action == "RunInstances" && n != 1 {
				t.Errorf("%d instances are terminated: %s", n, answer)
			}
			w.ask(strings.NewReplacer("t3.small", "t3.large", "m5.large", "m5.xlarge").Replace(request), 400, "IdempotentParameterMismatch")
			w.terminate(w.machines()...)
			w.ask(request, 400, "IdempotentInstanceTerminated")
			if n := len(w.machines()); n != 0 {
				t.Errorf("%d machines", n)
			}
		})
	}
}

// An instance that is gone before it has an address keeps no request waiting.
func TestAnInstanceThatIsGoneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		management, _ := launching(t, 1)
		a := instance.New(&ec2resource.EC2{Config: ec2resource.Config{Account: awsresource.Account{Management: management}, LaunchWait: time.Minute}}, nil, nil, nil)
		began := time.Now()
		a.AwaitAddresses(t.Context(), []*v1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: instanceB}}})
		if took := time.Since(began); took > 0 {
			t.Errorf("it was waited for %v", took)
		}
	})
}
