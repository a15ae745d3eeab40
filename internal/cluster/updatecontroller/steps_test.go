// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// tell is steps in a line: each with the seconds at which it started and finished, and its message.
func tell(steps []v1alpha1.UpdateStep) string {
	all := make([]string, 0, len(steps))
	for _, s := range steps {
		end := "…"
		if s.FinishedAt != nil {
			end = fmt.Sprint(int(s.FinishedAt.Sub(start).Seconds()))
		}
		text := fmt.Sprintf("%s %d-%s", s.Name, int(s.StartedAt.Sub(start).Seconds()), end)
		if s.Message != "" {
			text += " (" + s.Message + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// look is a decision about an update, with what is known of its target then.
type look struct {
	second int
	change func(u *v1alpha1.Update, is *facts)
	decision
	want string
}

// see lets looks follow one another.
func see(t *testing.T, u *v1alpha1.Update, is facts, looks []look) {
	t.Helper()
	for _, l := range looks {
		if l.change != nil {
			l.change(u, &is)
		}
		u.Status.Steps = progress(u, is, l.decision, start.Add(time.Duration(l.second)*time.Second))
		if diff := cmp.Diff(l.want, tell(u.Status.Steps)); diff != "" {
			t.Fatalf("at second %d: %s", l.second, diff)
		}
		if l.step == stepNote {
			u.Status.AppliedAt = new(metav1.NewTime(start.Add(time.Duration(l.second) * time.Second)))
		}
	}
}

func upgradeOf(version string) (*v1alpha1.Update, facts) {
	c := newCluster()
	c.Status.Version, c.Spec.Version = "v1.36.4", version
	u := newUpdate("u1", v1alpha1.UpdateChange{Version: version})
	u.Spec.Type = v1alpha1.UpdateVersion
	return u, facts{cluster: c}
}

func TestStepsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	u, is := upgradeOf("1.37")
	see(t, u, is, []look{
		{1, func(_ *v1alpha1.Update, is *facts) { is.older = "u0" }, wait("update u0 comes first"), "Turn 0-… (update u0 comes first)"},
		{5, func(_ *v1alpha1.Update, is *facts) { is.older = "" }, decision{step: stepNote}, "Turn 0-5, Change 5-5"},
		{6, nil, wait("starts"), "Turn 0-5, Change 5-5, APIServer 5-… (starts)"},
		{9, nil, wait("goes on"), "Turn 0-5, Change 5-5, APIServer 5-… (goes on)"},
		{20, func(_ *v1alpha1.Update, is *facts) { is.cluster.Status.Version = "v1.37.2" }, wait("follows"), "Turn 0-5, Change 5-5, APIServer 5-20, ControlPlane 20-… (follows)"},
		// The API server before answers once more: the update does not go back.
		{21, func(_ *v1alpha1.Update, is *facts) { is.cluster.Status.Version = "v1.36.4" }, wait("x"), "Turn 0-5, Change 5-5, APIServer 5-20, ControlPlane 20-… (x)"},
		{25, nil, decision{step: stepSucceed}, "Turn 0-5, Change 5-5, APIServer 5-20, ControlPlane 20-25"},
	})
}

func TestStepsThatNobodySaw(t *testing.T) {
	t.Parallel()
	u, is := upgradeOf("1.37")
	see(t, u, is, []look{
		{3, nil, decision{step: stepNote}, "Change 0-3"},
		{60, func(_ *v1alpha1.Update, is *facts) { is.cluster.Status.Version = "v1.37.2" }, decision{step: stepSucceed}, "Change 0-3, APIServer 3-60, ControlPlane 60-60"},
	})
}

func TestStepsOfAFailure(t *testing.T) {
	t.Parallel()
	u, is := upgradeOf("1.37")
	see(t, u, is, []look{
		{3, nil, decision{step: stepNote}, "Change 0-3"},
		{4, nil, wait("starts"), "Change 0-3, APIServer 3-… (starts)"},
		{9, nil, fail(codeNotPermitted, "it ended 3 times"), "Change 0-3, APIServer 3-9 (it ended 3 times)"},
	})
	u, is = upgradeOf("1.37")
	see(t, u, is, []look{{3, nil, fail(codeNotPermitted, "refused"), "Change 0-3 (refused)"}})
	u, is = upgradeOf("1.37")
	see(t, u, is, []look{
		{1, func(_ *v1alpha1.Update, is *facts) { is.older = "u0" }, wait("u0 first"), "Turn 0-… (u0 first)"},
		{2, nil, decision{step: stepCancel}, "Turn 0-2"},
	})
	u, is = upgradeOf("1.37")
	see(t, u, is, []look{
		{3, nil, decision{step: stepNote}, "Change 0-3"},
		{4, func(_ *v1alpha1.Update, is *facts) { is.cluster = nil }, fail(codeNotPermitted, "it is gone"), "Change 0-3, APIServer 3-4 (it is gone)"},
	})
}

func TestStepsOfARollout(t *testing.T) {
	t.Parallel()
	u, g := newUpdate("u1", v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Version: "1.37"}}), newGroup(2, 2)
	rollout := func(id string, phase v1alpha1.RolloutPhase) func(*v1alpha1.Update, *facts) {
		return func(_ *v1alpha1.Update, is *facts) {
			is.group.Status.Rollout = &v1alpha1.NodeGroupRolloutStatus{ID: id, Phase: phase}
		}
	}
	see(t, u, facts{cluster: newCluster(), group: g}, []look{
		{1, rollout("earlier", v1alpha1.RolloutScaleDown), decision{step: stepNote}, "Change 0-1"},
		{2, nil, wait("begins"), "Change 0-1, ScaleUp 1-… (begins)"},
		{3, rollout("u1", v1alpha1.RolloutScaleUp), wait("0 of 2"), "Change 0-1, ScaleUp 1-… (0 of 2)"},
		{20, rollout("u1", v1alpha1.RolloutUpgrade), wait("to be replaced: 2"), "Change 0-1, ScaleUp 1-20, Upgrade 20-… (to be replaced: 2)"},
		{40, rollout("u1", v1alpha1.RolloutScaleDown), wait("1 of 2 is Ready"), "Change 0-1, ScaleUp 1-20, Upgrade 20-40, ScaleDown 40-… (1 of 2 is Ready)"},
		{44, nil, decision{step: stepSucceed, message: "the last node"}, "Change 0-1, ScaleUp 1-20, Upgrade 20-40, ScaleDown 40-44 (the last node)"},
	})
}

// Each kind of change has its steps.
func TestStepsOfEachChange(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]v1alpha1.UpdateChange{
		"Change, APIServer, ControlPlane":      {Version: "1.37"},
		"Change, ControlPlane, Authenticator":  {AuthenticationMode: v1alpha1.AuthenticationAPI},
		"Change, ControlPlane, SecurityGroups": {SecurityGroups: &v1alpha1.UpdateSecurityGroups{}},
		"Change, ControlPlane":                 {DeletionProtection: new(true)},
		"Change, Authority":                    {KubeletAuthority: &v1alpha1.UpdateKubeletAuthority{}},
		"Change, ScaleUp, Upgrade, ScaleDown":  {Rollout: &v1alpha1.UpdateRollout{}},
		"Change, Nodes":                        {Scaling: &v1alpha1.UpdateScaling{}},
		"Change, Addon":                        {Addon: &v1alpha1.UpdateAddonSettings{}},
	} {
		u := newUpdate("u1", change)
		steps := progress(u, facts{cluster: newCluster(), group: newGroup(1, 1), addon: newAddon()}, decision{step: stepSucceed}, start)
		names := make([]string, 0, len(steps))
		for _, s := range steps {
			names = append(names, string(s.Name))
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A control plane that is Ready with an earlier generation has not taken the change.
func TestStepOfTheControlPlane(t *testing.T) {
	t.Parallel()
	u, c := newUpdate("u1", v1alpha1.UpdateChange{AuthenticationMode: v1alpha1.AuthenticationAPI}), newCluster()
	u.Status.AppliedAt = new(metav1.NewTime(start))
	if got := at(u, facts{cluster: c}); got != v1alpha1.UpdateStepAuthenticator {
		t.Errorf("it is at %s", got)
	}
	c.Generation = 2
	if got := at(u, facts{cluster: c}); got != v1alpha1.UpdateStepControlPlane {
		t.Errorf("it is at %s", got)
	}
}
