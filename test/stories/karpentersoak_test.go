// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// mostAttempts is how often Karpenter may ask for a machine that there is no room for in ten minutes. It leaves types out for three
// minutes after a refusal (UnavailableOfferingsTTL of its cache), and asks for several at once.
const mostAttempts = 8

// TestNoRoomForTenMinutes has a pod that asks for what the host has not. For ten minutes it is Pending with the reason, no machine
// is launched, Karpenter asks again as seldom as it says, and neither it nor the service starts again.
//
//story:about addons/karpenter cloud/ec2/fleet machine/hostroom
//story:needs karpenter
func TestNoRoomForTenMinutes(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	k := &karpenter{newIAM(t, i), "default"}
	k.install()
	before := k.mustKubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=karpenter", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}")
	k.wants("huge", 1, "{cpu: 500m, memory: 40Gi}")
	k.eventually("an Event says that there is no room", func() error {
		if len(k.refusedClaims()) == 0 {
			return errors.New("no Event has InsufficientCapacityError")
		}
		return nil
	})
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); <-time.After(10 * time.Second) {
		if machines := k.launched(); len(machines) > 0 {
			t.Fatalf("launched %v", machines)
		}
		why := k.mustKubectl("get", "pods", "-l", "app=huge", "-o", `jsonpath={.items[0].status.phase}: {.items[0].status.conditions[?(@.type=="PodScheduled")].message}`)
		if !strings.HasPrefix(why, "Pending: ") || !strings.Contains(why, "available") {
			t.Fatalf("the pod is %s", why)
		}
	}
	attempts := k.refusedClaims()
	if t.Logf("%d attempts in ten minutes", len(attempts)); len(attempts) > mostAttempts {
		t.Errorf("Karpenter asked %d times in ten minutes: %v", len(attempts), attempts)
	}
	after := k.mustKubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=karpenter", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}")
	if after != before {
		t.Errorf("Karpenter is %s, and was %s", after, before)
	}
	k.empties()
}

// refusedClaims are the NodeClaims that there was no room for, by Karpenter's Events.
func (k *karpenter) refusedClaims() []string {
	k.t.Helper()
	out := k.mustKubectl("get", "events", "-A", "-o", `jsonpath={range .items[?(@.reason=="InsufficientCapacityError")]}{.involvedObject.kind}/{.involvedObject.name}{"\n"}{end}`)
	claims := slices.DeleteFunc(strings.Fields(out), func(of string) bool { return !strings.HasPrefix(of, "NodeClaim/") })
	slices.Sort(claims)
	return slices.Compact(claims)
}
