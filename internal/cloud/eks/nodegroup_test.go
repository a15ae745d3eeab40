// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/platform/release"
)

// What terraform-aws-eks and people ask for and Muster does not need to obey: it is described as it was asked for, and
// nothing that was not.
func TestSettingsOfNodeGroupsThatAreKept(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	if err := w.api.Create(t.Context(), aTemplate()); err != nil {
		t.Fatal(err)
	}
	const path = "/clusters/Blue_1/node-groups"
	body := func(name, rest string) string {
		return strings.Replace(strings.Replace(strings.Replace(makeGroup, "Web_1", name, 1), `,"clientRequestToken":"g1"`, "", 1), `"instanceTypes":["m5.large"]`, rest, 1)
	}
	newest, _ := ami.Recommended(release.Default().Minor())
	const template = `"launchTemplate":{"name":"web","version":"2"}`
	for name, test := range map[string]struct{ asks, says string }{
		"module":    {template + `,"updateConfig":{"maxUnavailablePercentage":33}`, `"updateConfig":{"maxUnavailablePercentage":33}`},
		"several":   {`"updateConfig":{"maxUnavailable":3,"updateStrategy":"DEFAULT"}`, `"updateConfig":{"maxUnavailable":3,"updateStrategy":"DEFAULT"}`},
		"minimal":   {`"updateConfig":{"updateStrategy":"MINIMAL"}`, `"updateConfig":{"maxUnavailable":1,"updateStrategy":"MINIMAL"}`},
		"nothing":   {template, `"updateConfig":{"maxUnavailable":1}`},
		"release":   {`"releaseVersion":"` + newest.ReleaseVersion + `"`, `"releaseVersion":"` + newest.ReleaseVersion + `"`},
		"no-repair": {`"nodeRepairConfig":{"enabled":false}`, `"nodeRepairConfig":{"enabled":false}`},
		"repair":    {`"nodeRepairConfig":` + repairs, `"nodeRepairConfig":` + repairs},
		"disk":      {`"diskSize":30`, `"diskSize":30`},
		"warm":      {`"warmPoolConfig":{"enabled":true,"maxGroupPreparedCapacity":3,"minSize":2,"poolState":"Stopped","reuseOnScaleIn":true}`, `"warmPoolConfig":{"enabled":true,"minSize":2,"maxGroupPreparedCapacity":3,"poolState":"STOPPED","reuseOnScaleIn":true}`},
		"login":     {`"remoteAccess":{"ec2SshKey":"mine","sourceSecurityGroups":["` + groupHere + `"]}`, `"remoteAccess":{"ec2SshKey":"mine","sourceSecurityGroups":["` + groupHere + `"]}`},
	} {
		text := w.ask("POST", path, body(name, test.asks), 200, test.says)
		w.ask("GET", path+"/"+name, "", 200, test.says)
		for _, other := range []string{"nodeRepairConfig", "diskSize", "remoteAccess", "warmPoolConfig"} {
			if !strings.Contains(test.asks, other) && strings.Contains(text, other) {
				t.Errorf("%s: nobody asked for %s: %s", name, other, text)
			}
		}
	}
	w.ask("POST", path, body("refused", template+`,"diskSize":30`), 400, "InvalidParameterException", "Disk size must be specified within the launch template.")
	w.ask("POST", path, body("refused", template+`,"remoteAccess":{"ec2SshKey":"mine"}`), 400, "InvalidParameterException", "Remote access configuration cannot be specified with a launch template.")
}

// The maximum and the switch can be changed, and one of the two maxima takes the place of the other.
func TestMaximaOfNodeGroupsAreChanged(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200)
	const path = "/clusters/Blue_1/node-groups/Web_1/update-config"
	for body, want := range map[string]struct {
		params string
		change v1alpha1.UpdateChange
	}{
		`{"updateConfig":{"maxUnavailablePercentage":50}}`: {
			`"params":[{"type":"MaxUnavailablePercentage","value":"50"}]`, v1alpha1.UpdateChange{UpdateConfig: &v1alpha1.NodeGroupUpdateConfig{MaxUnavailablePercentage: 50}},
		},
		`{"updateConfig":{"updateStrategy":"MINIMAL"}}`: {
			`"params":[{"type":"UpdateStrategy","value":"MINIMAL"}]`, v1alpha1.UpdateChange{UpdateConfig: &v1alpha1.NodeGroupUpdateConfig{UpdateStrategy: v1alpha1.StrategyMinimal}},
		},
		`{"warmPoolConfig":{"enabled":true,"minSize":1,"poolState":"RUNNING"}}`: {
			`"params":[{"type":"WarmPoolEnabled","value":"true"},{"type":"WarmPoolMinSize","value":"1"},{"type":"WarmPoolState","value":"RUNNING"}]`,
			v1alpha1.UpdateChange{WarmPool: &v1alpha1.UpdateWarmPool{Pool: &v1alpha1.WarmPool{MinSize: 1, PoolState: v1alpha1.WarmRunning}}},
		},
		`{"warmPoolConfig":{"enabled":false}}`: {`"params":[{"type":"WarmPoolEnabled","value":"false"}]`, v1alpha1.UpdateChange{WarmPool: &v1alpha1.UpdateWarmPool{}}},
		`{"updateConfig":{"maxUnavailable":2},"nodeRepairConfig":{"enabled":false}}`: {
			`"params":[{"type":"MaxUnavailable","value":"2"},{"type":"NodeRepairEnabled","value":"false"}]`,
			v1alpha1.UpdateChange{UpdateConfig: &v1alpha1.NodeGroupUpdateConfig{MaxUnavailable: 2}, NodeRepairConfig: &v1alpha1.NodeRepairConfig{Enabled: new(false)}},
		},
	} {
		id := made(t, w.ask("POST", path, body, 200, `"type":"ConfigUpdate"`, want.params))
		u := &v1alpha1.Update{}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: id}, u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.change, u.Spec.Change); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	}
}

// repairs is a nodeRepairConfig with all that it can hold.
const repairs = `{"enabled":true,"maxUnhealthyNodeThresholdPercentage":30,"maxParallelNodesRepairedCount":2,"nodeRepairConfigOverrides":[{"nodeMonitoringCondition":"Ready","nodeUnhealthyReason":"NodeStatusUnknown","minRepairWaitTimeMins":1,"repairAction":"Reboot"}]}`

// A nodeRepairConfig is taken and described as EKS does; another one takes its place as a whole; and a wrong one is
// refused with everything that is wrong with it, in one line.
func TestRepairOfNodeGroups(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200)
	const path = "/clusters/Blue_1/node-groups/Web_1"
	for _, body := range []string{repairs, `{"enabled":true}`} {
		id := made(t, w.ask("POST", path+"/update-config", `{"nodeRepairConfig":`+body+`}`, 200, `"type":"ConfigUpdate"`, `{"type":"NodeRepairEnabled","value":"true"}`))
		u, group := &v1alpha1.Update{}, &v1alpha1.NodeGroup{}
		slug := v1alpha1.ClusterSlug("Blue_1")
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: id}, u); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: v1alpha1.NodeGroupSlug("Web_1")}, group); err != nil {
			t.Fatal(err)
		}
		nodegroupspec.Change(&group.Spec, u.Spec.Change) // as its controller does
		if err := w.api.Update(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if sent := strings.Contains(body, "maxParallel"); sent != slices.ContainsFunc(u.Spec.Params, func(p v1alpha1.UpdateParam) bool { return p.Type == "NodeRepairConfig" }) {
			t.Errorf("%s has the parameters %v", body, u.Spec.Params)
		}
		w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
		w.ask("GET", path, "", 200, `"nodeRepairConfig":`+body)
	}
	for body, says := range map[string][]string{
		`{}`: {"The request changes nothing"},
		`{"maxUnhealthyNodeThresholdCount":1,"maxUnhealthyNodeThresholdPercentage":1}`: {"give maxUnhealthyNodeThresholdCount or maxUnhealthyNodeThresholdPercentage, not both"},
		`{"maxUnhealthyNodeThresholdCount":0,"maxParallelNodesRepairedPercentage":101}`: {
			"nodeRepairConfig.maxUnhealthyNodeThresholdCount: Invalid value: 0: must be at least 1", "nodeRepairConfig.maxParallelNodesRepairedPercentage: Invalid value: 101: must be from 1 to 100",
		},
		`{"nodeRepairConfigOverrides":[{"nodeMonitoringCondition":"DiskPressure","repairAction":"Terminate"}]}`: {
			`nodeRepairConfigOverrides[0].nodeMonitoringCondition: Unsupported value: \"DiskPressure\": supported values: \"AcceleratedHardwareReady\"`, "nodeUnhealthyReason: Required value: an override needs all of its four values",
			"minRepairWaitTimeMins: Invalid value: 0: must be from 1 to 525600 minutes", `repairAction: Unsupported value: \"Terminate\"`,
		},
		`{"nodeRepairConfigOverrides":[{"nodeMonitoringCondition":"Ready","nodeUnhealthyReason":"a","minRepairWaitTimeMins":1,"repairAction":"Replace"},{"nodeMonitoringCondition":"Ready","nodeUnhealthyReason":"a","minRepairWaitTimeMins":2,"repairAction":"NoAction"}]}`: {
			`nodeRepairConfigOverrides[1]: Duplicate value`,
		},
	} {
		w.ask("POST", path+"/update-config", `{"nodeRepairConfig":`+body+`}`, 400, append(says, "InvalidParameterException")...)
	}
}
