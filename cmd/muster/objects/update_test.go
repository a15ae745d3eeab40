// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
)

func newUpdate(name string, age time.Duration, spec v1alpha1.UpdateSpec, status v1alpha1.UpdateStatus) *v1alpha1.Update {
	u := &v1alpha1.Update{ObjectMeta: clitest.MadeBefore(name, age), Spec: spec, Status: status}
	u.Namespace, u.Spec.ClusterName = "home", "home"
	return u
}

// steps follow one another by seconds; the last one goes on.
func steps(names ...v1alpha1.UpdateStepName) []v1alpha1.UpdateStep {
	all := make([]v1alpha1.UpdateStep, len(names))
	for i, name := range names {
		all[i] = v1alpha1.UpdateStep{Name: name, StartedAt: metav1.NewTime(clitest.Noon.Add(time.Duration(i) * time.Second))}
		if i > 0 {
			all[i-1].FinishedAt = &all[i].StartedAt
		}
	}
	return all
}

// finished has the last step end after two minutes.
func finished(all []v1alpha1.UpdateStep) []v1alpha1.UpdateStep {
	last := &all[len(all)-1]
	last.FinishedAt = new(metav1.NewTime(last.StartedAt.Add(2 * time.Minute)))
	return all
}

func TestGetUpdates(t *testing.T) {
	t.Parallel()
	objects := append(
		clitest.World(),
		newUpdate("0a", time.Minute, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateLogging}, v1alpha1.UpdateStatus{Message: "the API server starts", Steps: steps(v1alpha1.UpdateStepChange, v1alpha1.UpdateStepControlPlane)}),
		newUpdate("1b", time.Hour, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateConfig, NodeGroup: "workers"}, v1alpha1.UpdateStatus{
			Phase: v1alpha1.UpdateFailed, Message: "the machines are not Ready", Steps: finished(steps(v1alpha1.UpdateStepChange, v1alpha1.UpdateStepNodes)),
			Errors: []v1alpha1.UpdateError{{ErrorCode: "NodeCreationFailure", ErrorMessage: "1 of 2 machines is Ready"}},
		}),
		newUpdate("2c", 2*time.Hour, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateAddon, Addon: "coredns"}, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, Message: "done", Steps: finished(steps(v1alpha1.UpdateStepChange, v1alpha1.UpdateStepAddon))}),
	)
	other := newUpdate("3d", time.Hour, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateLogging}, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	other.Namespace, other.Spec.ClusterName = v1alpha1.ClusterSlug("Home_2"), "Home_2"
	several := clitest.NewBench(t, interceptor.Funcs{}, append(append(slices.Clone(objects), secondCluster()...), other)...)
	for file, args := range map[string][]string{"get-updates-of-several.txt": {"updates"}, "get-updates-wide.txt": {"update", "-o", "wide", "--cluster", "home"}} {
		if err := several.Run(t.Context(), getOf(several), args...); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, file, several.Out.String())
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	for file, args := range map[string][]string{"get-updates.txt": {"updates"}, "get-updates-wide.txt": {"update", "-o", "wide", "--cluster", "home"}} {
		if err := b.Run(t.Context(), getOf(b), args...); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, file, b.Out.String())
	}
}
