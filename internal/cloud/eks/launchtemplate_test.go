// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

const templateID = "lt-0123456789abcdef0"

func aTemplate() *v1alpha1.LaunchTemplate {
	t := &v1alpha1.LaunchTemplate{ObjectMeta: metav1.ObjectMeta{Name: templateID}, Spec: v1alpha1.LaunchTemplateSpec{Name: "web", DefaultVersion: 1, LatestVersion: 4}}
	for i, data := range []string{
		`{"InstanceType":"t3.small","UserData":"IyEvYmluL3NoCg==","SecurityGroupIds":["` + groupHere + `"]}`,
		`{"MetadataOptions":{"HttpTokens":"required","HttpPutResponseHopLimit":2}}`,
		`{"IamInstanceProfile":{"Name":"a"}}`,
		`{"ImageId":"ami-0123456789abcdef0"}`,
	} {
		t.Spec.Versions = append(t.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: int64(i + 1), Data: runtime.RawExtension{Raw: []byte(data)}})
	}
	return t
}

func TestNodeGroupsOfLaunchTemplates(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	template := aTemplate()
	for n, id := range map[int64]string{5: groupElsewhere, 6: "sg-00000000000000000"} {
		template.Spec.Versions = append(template.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: n, Data: runtime.RawExtension{Raw: []byte(`{"SecurityGroupIds":["` + id + `"]}`)}})
	}
	if err := w.api.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	group := func(name, rest string) string {
		body := strings.Replace(strings.Replace(makeGroup, "Web_1", name, 1), `,"clientRequestToken":"g1"`, "", 1)
		return strings.Replace(body, `"instanceTypes":["m5.large"]`, rest, 1)
	}
	const path = "/clusters/Blue_1/node-groups"
	for name, test := range map[string]struct {
		rest, says, not string
		spec            v1alpha1.NodeGroupSpec
	}{
		"default": {
			`"launchTemplate":{"id":"` + templateID + `"}`, `"launchTemplate":{"name":"web","version":"1","id":"` + templateID + `"}`, "instanceTypes",
			v1alpha1.NodeGroupSpec{LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{
				ID: templateID, Name: "web", Version: 1, InstanceType: "t3.small", UserData: "#!/bin/sh\n", SecurityGroupIDs: []string{groupHere},
			}},
		},
		"by-name": {
			`"launchTemplate":{"name":"web","version":"2"}`, `"instanceTypes":["t3.medium"]`, "nothing",
			v1alpha1.NodeGroupSpec{InstanceTypes: []string{"t3.medium"}, LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{
				ID: templateID, Name: "web", Version: 2, MetadataOptions: v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: 2},
			}},
		},
		"with-types": {
			`"launchTemplate":{"name":"web","version":"2"},"instanceTypes":["m5.large","m5.xlarge"]`, `"instanceTypes":["m5.large","m5.xlarge"]`, "nothing",
			v1alpha1.NodeGroupSpec{InstanceTypes: []string{"m5.large", "m5.xlarge"}, LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{
				ID: templateID, Name: "web", Version: 2, MetadataOptions: v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: 2},
			}},
		},
		"neither": {`"labels":{}`, `"instanceTypes":["t3.medium"]`, "launchTemplate", v1alpha1.NodeGroupSpec{InstanceTypes: []string{"t3.medium"}}},
	} {
		body := group(name, test.rest)
		if name == "neither" {
			body = strings.Replace(body, `"labels":{"pool":"web"},`, "", 1)
		}
		if text := w.ask("POST", path, body, 200, test.says); strings.Contains(text, test.not) {
			t.Errorf("%s: %s", name, text)
		}
		kept := &v1alpha1.NodeGroup{}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: name}, kept); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.spec, v1alpha1.NodeGroupSpec{InstanceTypes: kept.Spec.InstanceTypes, LaunchTemplate: kept.Spec.LaunchTemplate}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for rest, want := range map[string]string{
		`"launchTemplate":{"name":"web"},"instanceTypes":["m5.large"]`:            "InvalidRequestException Cannot specify instance types in launch template and API request",
		`"launchTemplate":{"name":"web","version":"3"}`:                           "InvalidParameterException Launch template should not specify an instance profile. The noderole",
		`"launchTemplate":{"name":"web","version":"4"}`:                           "InvalidParameterException the image ami-0123456789abcdef0",
		`"launchTemplate":{"name":"web","version":"5"}`:                           "InvalidParameterException are not in the same VPC",
		`"launchTemplate":{"name":"web","version":"6"}`:                           "InvalidParameterException The security group 'sg-00000000000000000' does not exist",
		`"launchTemplate":{"name":"web","version":"9"}`:                           "InvalidParameterException Could not find the specified version 9",
		`"launchTemplate":{"name":"other"}`:                                       "InvalidParameterException with template name other, does not exist",
		`"launchTemplate":{"id":"lt-0123456789abcdef1"}`:                          "InvalidParameterException with template ID lt-0123456789abcdef1, does not exist",
		`"launchTemplate":{"id":"web"}`:                                           "InvalidParameterException Invalid launch template ID",
		`"launchTemplate":{"version":"1"}`:                                        "InvalidParameterException either the launch template ID or the launch template name",
		`"launchTemplate":{"name":"web","id":"` + templateID + `","version":"1"}`: "InvalidParameterException but not both",
		`"instanceTypes":["t3.small","x9.huge"]`:                                  "InvalidParameterException The following supplied instance types do not exist: [x9.huge]",
	} {
		code, says, _ := strings.Cut(want, " ")
		w.ask("POST", path, group("refused", rest), 400, `"__type":"`+code+`"`, says)
	}
	w.ask("GET", path+"/refused", "", 404)
}
