// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cloud/eks/eksclient"
)

// fakeFargate remembers what it is asked for.
type fakeFargate struct {
	asked   eksclient.FargateProfile
	cluster string
	err     error
}

func (f *fakeFargate) CreateFargateProfile(_ context.Context, cluster string, p eksclient.FargateProfile) error {
	f.cluster, f.asked = cluster, p
	return f.err
}

const podsRole = "arn:aws:iam::000000000000:role/pods"

func newProfile() *v1alpha1.FargateProfile {
	p := &v1alpha1.FargateProfile{ObjectMeta: clitest.MadeBefore("jobs", 5*time.Minute)}
	p.Namespace = "home"
	p.Spec = v1alpha1.FargateProfileSpec{
		Name: "jobs", ClusterName: "home", PodExecutionRoleARN: podsRole,
		Selectors: []v1alpha1.FargateSelector{{Namespace: "jobs", Labels: map[string]v1alpha1.FargateLabel{"size": "small"}}},
	}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Active"}}
	p.UID = types.UID("uid-of-jobs")
	return p
}

func TestSelectorFrom(t *testing.T) {
	for text, want := range map[string]eksclient.FargateSelector{
		"namespace=jobs":          {Namespace: "jobs"},
		"namespace=team-*,a=b,c=": {Namespace: "team-*", Labels: map[string]string{"a": "b", "c": ""}},
		"a/b=c,namespace=x":       {Namespace: "x", Labels: map[string]string{"a/b": "c"}},
	} {
		if got, err := selectorFrom(text); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{"": "must be namespace=NAMESPACE", "jobs": "must be namespace=NAMESPACE", "=x": "must be namespace=NAMESPACE", "a=b": "it has no namespace", "namespace=": "it has no namespace"} {
		if got, err := selectorFrom(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

func TestSameProfile(t *testing.T) {
	asked := eksclient.FargateProfile{Name: "jobs", RoleARN: podsRole, Selectors: []eksclient.FargateSelector{{Namespace: "jobs", Labels: map[string]string{"size": "small"}}}}
	if !sameProfile(newProfile(), asked) {
		t.Error("a profile with the same settings differs")
	}
	for name, change := range map[string]func(*eksclient.FargateProfile){
		"role": func(p *eksclient.FargateProfile) { p.RoleARN += "x" }, "subnets": func(p *eksclient.FargateProfile) { p.Subnets = []string{"subnet-1"} },
		"selectors": func(p *eksclient.FargateProfile) { p.Selectors = nil },
	} {
		other := asked
		change(&other)
		if sameProfile(newProfile(), other) {
			t.Errorf("a profile with other %s is the same", name)
		}
	}
}

// The command asks EKS's API, and is refused in its words.
func TestCreateFargateProfile(t *testing.T) {
	api := &fakeFargate{}
	c := &createFargateProfileCommand{api: func(context.Context, *terminal.Options) (fargateAPI, error) { return api, nil }}
	asked := eksclient.FargateProfile{Name: "jobs", RoleARN: podsRole}
	if err := c.create(t.Context(), "home", asked); err != nil || api.cluster != "home" || cmp.Diff(asked, api.asked) != "" {
		t.Errorf("%+v, %v", api, err)
	}
	api.err = &eksclient.Error{Code: "InvalidParameterException", Message: "no"}
	if err := c.create(t.Context(), "home", asked); !errors.Is(err, api.err) {
		t.Errorf("%v", err)
	}
}
