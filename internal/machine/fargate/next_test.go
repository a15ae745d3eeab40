// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func waiting() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-pod", Labels: map[string]string{v1alpha1.LabelFargateProfile: "a"}},
		Spec:       corev1.PodSpec{SchedulerName: v1alpha1.FargateScheduler, Containers: []corev1.Container{container("250m", "256Mi")}},
	}
}

func TestNext(t *testing.T) {
	a := profile("a", v1alpha1.FargateSelector{Namespace: "shop"})
	pending := profile("a", v1alpha1.FargateSelector{Namespace: "shop"})
	pending.Status = v1alpha1.FargateProfileStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: "the role is gone"}}}
	m := Machine("blue", waiting(), &a, Size{250, 512}, nil, "subnet-1", "ami-1")
	withReady := func(status metav1.ConditionStatus, node string) *v1alpha1.Machine {
		is := m.DeepCopy()
		is.Status = v1alpha1.MachineStatus{NodeName: node, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Message: "it boots"}}}
		return is
	}
	going := m.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		profiles []v1alpha1.FargateProfile
		machine  *v1alpha1.Machine
		want     Action
		says     string
	}{
		"it has no machine":          {nil, []v1alpha1.FargateProfile{a}, nil, Make, ""},
		"of another scheduler":       {func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }, []v1alpha1.FargateProfile{a}, nil, Nothing, ""},
		"it is bound":                {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, []v1alpha1.FargateProfile{a}, nil, Nothing, ""},
		"it is being deleted":        {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, []v1alpha1.FargateProfile{a}, nil, Nothing, ""},
		"it is gated":                {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }, []v1alpha1.FargateProfile{a}, nil, Nothing, ""},
		"no profile is there":        {nil, nil, nil, Refuse, `Fargate profile "a", which its label names, does not select it, or is gone`},
		"no label and no profile":    {func(p *corev1.Pod) { p.Labels = nil }, nil, nil, Refuse, "no Fargate profile selects it"},
		"its label was changed":      {func(p *corev1.Pod) { p.Labels[v1alpha1.LabelFargateProfile] = "b" }, []v1alpha1.FargateProfile{a}, nil, Refuse, `"b", which its label names, does not select it`},
		"of another namespace":       {func(p *corev1.Pod) { p.Namespace = "other" }, []v1alpha1.FargateProfile{a}, nil, Refuse, "does not select it"},
		"its profile is not ready":   {nil, []v1alpha1.FargateProfile{pending}, nil, Refuse, "Fargate profile a is not ready: the role is gone"},
		"it is refused":              {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, []v1alpha1.FargateProfile{a}, nil, Refuse, "HostNetwork"},
		"it is too large":            {func(p *corev1.Pod) { p.Spec.Containers[0] = container("17", "") }, []v1alpha1.FargateProfile{a}, nil, Refuse, "Pod not supported on Fargate: the pod requests 17 vCPUs"},
		"its machine is new":         {nil, nil, m, Wait, "is being launched"},
		"its machine boots":          {nil, nil, withReady(metav1.ConditionFalse, "n"), Wait, "is not Ready: it boots"},
		"its machine is Ready":       {nil, nil, withReady(metav1.ConditionTrue, "n"), Bind, ""},
		"its machine has no name":    {nil, nil, withReady(metav1.ConditionTrue, ""), Wait, "is not Ready"},
		"its machine is being ended": {nil, nil, going, Wait, "is being deleted"},
	} {
		pod := waiting()
		if c.change != nil {
			c.change(pod)
		}
		got := Next(Facts{Pod: pod, Profiles: c.profiles, Machine: c.machine})
		if got.Action != c.want || !strings.Contains(got.Message, c.says) || (got.Message == "") != (c.says == "") {
			t.Errorf("%s: %+v, want %s %q", name, got, c.want, c.says)
		}
		if (got.Action == Make || got.Action == Bind) && got.Size != (Size{250, 512}) || (got.Action == Make) != (got.Profile != nil) {
			t.Errorf("%s: size %s, profile %v", name, got.Size, got.Profile)
		}
	}
}

func TestMachine(t *testing.T) {
	a := profile("a", v1alpha1.FargateSelector{Namespace: "shop"})
	m := Machine("blue", waiting(), &a, Size{250, 512}, nil, "subnet-1", "ami-1")
	if again := Machine("blue", waiting(), &a, Size{500, 1024}, nil, "subnet-2", "ami-1"); again.Name != m.Name || len(m.Name) != len("i-0123456789abcdef0") {
		t.Errorf("the same pod has the machines %s and %s", m.Name, again.Name)
	}
	if MachineID("green", "uid-of-pod") == m.Name || MachineID("blue", "another") == m.Name {
		t.Error("two pods have one machine")
	}
	if m.Spec.InstanceProfile != "eks-a" || m.Spec.Fargate.PodUID != "uid-of-pod" || m.Spec.NodeGroup != "" || !m.Spec.Rendered() || m.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("%+v", m.Spec)
	}
}

func TestFitting(t *testing.T) {
	places := []Place{{"subnet-a", "us-east-1a"}, {"subnet-b", "us-east-1b"}}
	in := func(key string, values ...string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}},
		}}}
	}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"anywhere":          {corev1.PodSpec{}, "subnet-a subnet-b"},
		"a zone":            {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelTopologyZone: "us-east-1b"}}, "subnet-b"},
		"a zone that is no": {corev1.PodSpec{Affinity: in(corev1.LabelTopologyZone, "us-east-1c")}, ""},
		"arm64":             {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelArchStable: "arm64"}}, ""},
		"Fargate":           {corev1.PodSpec{Affinity: in(v1alpha1.LabelComputeType, "fargate", "ec2")}, "subnet-a subnet-b"},
		"a group's label":   {corev1.PodSpec{NodeSelector: map[string]string{"pool": "batch"}}, ""},
	} {
		var got []string
		for _, p := range Fitting(&corev1.Pod{Spec: c.spec}, "us-east-1", places) {
			got = append(got, p.SubnetID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
