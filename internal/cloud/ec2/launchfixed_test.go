// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// Instances are of the version of a launch template that IAM was asked about, though another one with a role that the caller
// may not pass becomes the default one, or takes the name, between the questions and the launch.
func TestLaunchesAreOfTheTemplateThatWasAskedAbout(t *testing.T) {
	const withRole = `{"InstanceType":"t3.small","IamInstanceProfile":{"Name":"node"},"ImageId":"`
	fleet := fleetRequest(1, "on-demand", "t3.small")
	byName := "RunInstances&MinCount=1&MaxCount=1&LaunchTemplate.LaunchTemplateName=nodes&SubnetId=" + subnetA
	for name, c := range map[string]struct {
		request string
		status  int
		// before and meanwhile change the template, which is not there if they take it away.
		before, meanwhile func(*v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate
	}{
		"a fleet, another default": {fleet, 200, nil, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate { l.Spec.DefaultVersion = 3; return l }},
		"another default":          {byName, 200, nil, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate { l.Spec.DefaultVersion = 3; return l }},
		"a fleet, another of the name": {fleet, 400, nil, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate {
			l.Name, l.ResourceVersion, l.Spec.DefaultVersion = "lt-0000000000000000c", "", 3
			return l
		}},
		"another of the name": {byName, 400, nil, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate {
			l.Name, l.ResourceVersion, l.Spec.DefaultVersion = "lt-0000000000000000c", "", 3
			return l
		}},
		"a fleet, a template that comes": {fleet, 400, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate { l.Spec.Name = "others"; return l }, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate {
			l.Spec.Name, l.Spec.DefaultVersion = "nodes", 3
			return l
		}},
		"a template that comes": {byName + "&ImageId=" + testImage + "&InstanceType=t3.small", 400, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate { l.Spec.Name = "others"; return l }, func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate {
			l.Spec.Name, l.Spec.DefaultVersion = "nodes", 3
			return l
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := runWorld(t)
			change := func(change func(*v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate) {
				t.Helper()
				l := &v1alpha1.LaunchTemplate{}
				if err := w.api.Get(t.Context(), client.ObjectKey{Name: "lt-0000000000000000a"}, l); err != nil {
					t.Fatal(err)
				}
				was := l.DeepCopy()
				if l = change(l); l.Name == was.Name {
					if err := w.api.Update(t.Context(), l); err != nil {
						t.Fatal(err)
					}
					return
				}
				if err := w.api.Delete(t.Context(), was); err != nil {
					t.Fatal(err)
				}
				if err := w.api.Create(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			change(func(l *v1alpha1.LaunchTemplate) *v1alpha1.LaunchTemplate {
				l.Spec.LatestVersion = 3
				l.Spec.Versions = append(l.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: 3, Data: runtime.RawExtension{Raw: []byte(withRole + testImage + `"}`)}})
				return l
			})
			if c.before != nil {
				change(c.before)
			}
			w.gate.Answered = func() {
				w.gate.Answered = nil
				change(c.meanwhile)
			}
			w.ask(c.request, c.status)
			for _, m := range w.machines() {
				if m.Spec.InstanceProfile != "" {
					t.Errorf("%s has the role of %s", m.Name, m.Spec.InstanceProfile)
				}
			}
			if asked := strings.Join(w.gate.Asked, "\n"); strings.Contains(asked, "iam:PassRole") {
				t.Errorf("IAM is asked about the role: the test shows nothing:\n%s", asked)
			}
		})
	}
}
