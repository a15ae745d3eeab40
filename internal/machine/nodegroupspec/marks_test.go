// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

func taint(key string, value v1alpha1.LabelValue) v1alpha1.NodeTaint {
	return v1alpha1.NodeTaint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
}

func TestMark(t *testing.T) {
	t.Parallel()
	const other = "example.com/other"
	labels := func(pairs ...string) v1alpha1.NodeLabels {
		l := v1alpha1.NodeLabels{}
		for i := 0; i < len(pairs); i += 2 {
			l[pairs[i]] = v1alpha1.LabelValue(pairs[i+1])
		}
		return l
	}
	taints := func(all ...v1alpha1.NodeTaint) v1alpha1.NodeTaints { return all }
	for name, c := range map[string]struct{ before, now, is, want Marks }{
		"nothing":           {Marks{}, Marks{}, Marks{Labels: labels(other, "x")}, Marks{Labels: labels(other, "x")}},
		"new ones":          {Marks{}, Marks{labels("a", "1"), taints(taint("t", "1"))}, Marks{labels(other, "x"), taints(taint(other, "x"))}, Marks{labels("a", "1", other, "x"), taints(taint(other, "x"), taint("t", "1"))}},
		"removed":           {Marks{labels("a", "1"), taints(taint("t", "1"))}, Marks{}, Marks{labels("a", "1", other, "x"), taints(taint("t", "1"), taint(other, "x"))}, Marks{labels(other, "x"), taints(taint(other, "x"))}},
		"another value":     {Marks{labels("a", "1"), taints(taint("t", "1"))}, Marks{labels("a", "2"), taints(taint("t", "2"))}, Marks{labels("a", "1"), taints(taint("t", "1"))}, Marks{labels("a", "2"), taints(taint("t", "2"))}},
		"somebody's value":  {Marks{labels("a", "1", "b", "1"), taints(taint("t", "1"))}, Marks{labels("a", "1", "b", "2"), taints(taint("t", "1"))}, Marks{labels("a", "mine", "b", "mine"), taints(taint("t", "mine"))}, Marks{labels("a", "mine", "b", "2"), taints(taint("t", "mine"))}},
		"removed, not mine": {Marks{labels("a", "1"), taints(taint("t", "1"))}, Marks{}, Marks{labels("a", "mine"), taints(taint("t", "mine"))}, Marks{labels("a", "mine"), taints(taint("t", "mine"))}},
		"done already":      {Marks{labels("a", "1"), nil}, Marks{labels("b", "2"), taints(taint("t", ""))}, Marks{labels("b", "2"), taints(taint("t", ""))}, Marks{labels("b", "2"), taints(taint("t", ""))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{}
			node.Labels, node.Spec.Taints = c.is.Labels.Strings(), c.is.Taints.Core()
			Mark(node, c.before, c.now)
			got, want := node.DeepCopy(), &corev1.Node{}
			want.Labels, want.Spec.Taints = c.want.Labels.Strings(), c.want.Taints.Core()
			if len(got.Labels) == 0 && len(want.Labels) == 0 {
				got.Labels, want.Labels = nil, nil
			}
			if len(got.Spec.Taints) == 0 && len(want.Spec.Taints) == 0 {
				got.Spec.Taints, want.Spec.Taints = nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if Mark(node, c.before, c.now); cmp.Diff(want.Spec.Taints, node.Spec.Taints) != "" && len(want.Spec.Taints) > 0 {
				t.Errorf("made twice it is something else: %v", node.Spec.Taints)
			}
		})
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	was := v1alpha1.NodeGroupSpec{
		Labels: v1alpha1.NodeLabels{"a": "1", "b": "1"}, Taints: v1alpha1.NodeTaints{taint("x", "1"), taint("y", "1"), {Key: "x", Effect: corev1.TaintEffectNoExecute}},
		ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, DesiredSize: 1, MaxSize: 3},
		EKS:           v1alpha1.NodeGroupEKS{UpdateConfig: v1alpha1.NodeGroupUpdateConfig{MaxUnavailable: 2}, NodeRepairEnabled: new(false), DiskSize: 20},
	}
	is := was.DeepCopy()
	Change(is, v1alpha1.UpdateChange{
		Scaling:      &v1alpha1.UpdateScaling{DesiredSize: new(int32(2))},
		UpdateConfig: &v1alpha1.NodeGroupUpdateConfig{MaxUnavailablePercentage: 33}, NodeRepairConfig: &v1alpha1.NodeRepairConfig{Enabled: new(false)},
		Labels: &v1alpha1.UpdateLabels{Set: v1alpha1.NodeLabels{"b": "2", "c": "3"}, Remove: []string{"a", "none"}},
		Taints: &v1alpha1.UpdateTaints{Set: v1alpha1.NodeTaints{taint("y", "2"), taint("z", "")}, Remove: v1alpha1.NodeTaints{taint("x", "whatever")}},
	})
	want := v1alpha1.NodeGroupSpec{
		Labels: v1alpha1.NodeLabels{"b": "2", "c": "3"}, Taints: v1alpha1.NodeTaints{{Key: "x", Effect: corev1.TaintEffectNoExecute}, taint("y", "2"), taint("z", "")},
		ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, DesiredSize: 2, MaxSize: 3},
		EKS:           v1alpha1.NodeGroupEKS{UpdateConfig: v1alpha1.NodeGroupUpdateConfig{MaxUnavailablePercentage: 33}, NodeRepairConfig: &v1alpha1.NodeRepairConfig{Enabled: new(false)}, DiskSize: 20},
	}
	if diff := cmp.Diff(want, *is); diff != "" {
		t.Error(diff)
	}
	if (Marks{Labels: was.Labels}).Equal(Marks{Labels: is.Labels}) || (Marks{Taints: was.Taints}).Equal(Marks{Taints: is.Taints}) || !(Marks{Labels: is.Labels, Taints: is.Taints}).Equal(Marks{Labels: want.Labels, Taints: want.Taints}) {
		t.Error("Equal does not tell them apart")
	}
}
