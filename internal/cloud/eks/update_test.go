// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// made is the id of the update in an answer.
func made(t *testing.T, answer string) string {
	t.Helper()
	var out struct{ Update struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &out); err != nil || len(out.Update.ID) != 36 {
		t.Fatalf("%s: %v", answer, err)
	}
	return out.Update.ID
}

// ends has an update ended, as its controller does.
func (w *world) ends(id string, status v1alpha1.UpdateStatus) {
	w.t.Helper()
	u := &v1alpha1.Update{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: id}, u); err != nil {
		w.t.Fatal(err)
	}
	u.Status = status
	if err := w.api.Update(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
}

func TestUpdatesOfACluster(t *testing.T) {
	const path = "/clusters/Blue_1/update-config"
	const protect = `{"deletionProtection":true,"clientRequestToken":"u1"}`
	w := newWorld(t, nil)
	w.ask("POST", path, protect, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", strings.Replace(makeOne, `"API"`, `"API_AND_CONFIG_MAP"`, 1), 200)
	w.ask("POST", path, protect, 409, "ResourceInUseException", "is not in ACTIVE status: it is CREATING")
	w.served("Blue_1")
	answer := w.ask("POST", path, protect, 200, `"status":"InProgress"`, `"type":"DeletionProtectionUpdate"`, `"params":[{"type":"DeletionProtection","value":"true"}]`, `"errors":[]`, `"createdAt":1800000000`)
	if again := w.ask("POST", path, protect, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	first := made(t, answer)
	w.ask("GET", "/clusters/Blue_1", "", 200, `"status":"UPDATING"`)
	w.ask("DELETE", "/clusters/Blue_1", "", 409, "currently has update "+first+" in progress")
	w.ask("POST", path, strings.Replace(protect, "true", "false", 1), 400, "earlier request with other parameters")
	w.ask("POST", path, `{"upgradePolicy":{"supportType":"STANDARD"}}`, 409, "ResourceInUseException", "has update "+first+" in progress")
	w.ends(first, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed, Errors: []v1alpha1.UpdateError{{ErrorCode: "OperationNotPermitted", ErrorMessage: "why", ResourceIDs: []string{"Blue_1"}}}})
	w.ask("GET", "/clusters/Blue_1/updates/"+first, "", 200, `"status":"Failed"`, `"errors":[{"errorCode":"OperationNotPermitted","errorMessage":"why","resourceIds":["Blue_1"]}]`)
	w.ask("POST", path, protect, 200, `"status":"Failed"`) // what became of it

	for name, c := range map[string]struct{ body, says string }{
		"nothing":          {`{}`, "The type for cluster update was not provided."},
		"two at once":      {`{"deletionProtection":true,"upgradePolicy":{"supportType":"STANDARD"}}`, "Only one type of update can be allowed."},
		"as it is":         {`{"deletionProtection":false}`, "No changes needed"},
		"the same mode":    {`{"accessConfig":{"authenticationMode":"API_AND_CONFIG_MAP"}}`, "No changes needed"},
		"a mode back":      {`{"accessConfig":{"authenticationMode":"CONFIG_MAP"}}`, "Unsupported authentication mode update from API_AND_CONFIG_MAP to CONFIG_MAP"},
		"no mode":          {`{"accessConfig":{"authenticationMode":"ANY"}}`, "is not known"},
		"the same logs":    {`{"logging":{"clusterLogging":[{"types":["api"],"enabled":true}]}}`, "No changes needed for the logging config provided"},
		"no log":           {`{"logging":{"clusterLogging":[{"types":["all"],"enabled":true}]}}`, "The log type"},
		"no endpoint":      {`{"resourcesVpcConfig":{"endpointPublicAccess":false}}`, "Private and public endpoint access cannot be false"},
		"the same ones":    {`{"resourcesVpcConfig":{"endpointPublicAccess":true}}`, "already at the desired configuration"},
		"subnets":          {`{"resourcesVpcConfig":{"subnetIds":["subnet-1","subnet-3"]}}`, "keep their subnets"},
		"no such group":    {`{"resourcesVpcConfig":{"securityGroupIds":["sg-1"]}}`, "The security group 'sg-1' does not exist"},
		"groups elsewhere": {`{"resourcesVpcConfig":{"securityGroupIds":["` + groupElsewhere + `"]}}`, "are not in the same VPC"},
		"a group twice":    {`{"resourcesVpcConfig":{"securityGroupIds":["` + groupHere + `","` + groupHere + `"]}}`, "is there twice"},
		"many groups":      {`{"resourcesVpcConfig":{"securityGroupIds":["1","2","3","4","5","6"]}}`, "A cluster has 5 securityGroupIds at most, not 6"},
		"the same groups":  {`{"resourcesVpcConfig":{"securityGroupIds":[]}}`, "already at the desired configuration"},
		"both":             {`{"resourcesVpcConfig":{"securityGroupIds":["` + groupHere + `"],"endpointPrivateAccess":true}}`, "Only one type of update"},
		"ranges":           {`{"resourcesVpcConfig":{"publicAccessCidrs":["10.0.0.0/8"]}}`, "publicAccessCidrs"},
		"support":          {`{"upgradePolicy":{"supportType":"LONG"}}`, "STANDARD or EXTENDED"},
		"out of ranges": {
			`{"kubeApiServerConfig":{"eventTtl":"61m","serviceNodePortRange":{"minPort":10259,"maxPort":32767}},"kubeControllerManagerConfig":{"podGcControllerConfig":{"terminatedPodGcThreshold":1}}}`,
			`kubeApiServerConfig.eventTtl: Invalid value: \"61m\": must be from 10m to 60m, with one unit; kubeApiServerConfig.serviceNodePortRange.minPort: Invalid value: 10259: must be from 10260 to 32767; kubeControllerManagerConfig.podGcControllerConfig.terminatedPodGcThreshold: Invalid value: 1: must be from 10000 to 12500`,
		},
		"the same settings":   {`{"kubeApiServerConfig":{"eventTtl":"1h"},"kubeSchedulerConfig":{"nodeResourcesFit":{"scoringStrategy":{"type":"LeastAllocated"}}}}`, "No changes needed for the control plane component config provided"},
		"no settings":         {`{"kubeApiServerConfig":{}}`, "No changes needed"},
		"settings and others": {`{"kubeApiServerConfig":{"eventTtl":"30m"},"deletionProtection":true}`, "Only one type of update"},
		"what is not here":    {`{"remoteNetworkConfig":{}}`, "does not support remoteNetworkConfig"},
		"auto mode alone":     {`{"computeConfig":{"enabled":true}}`, "are all either fully enabled or fully disabled"},
		"auto mode as it is":  {`{` + autoOff + `}`, "No changes needed for the EKS Auto Mode config provided"},
		"auto mode, unbuilt":  {`{` + autoOn + `}`, "Karpenter is not built here"},
		"no shifts already":   {`{"zonalShiftConfig":{"enabled":false}}`, "No changes needed: zonalShiftConfig.enabled is false already"},
		"shifts and others":   {`{"zonalShiftConfig":{"enabled":true},"deletionProtection":true}`, "Only one type of update"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.ask("POST", path, c.body, 400, `"__type":"InvalidParameterException"`, c.says)
		})
	}
	w.t = t
	ids := []string{first}
	for _, c := range []struct{ body, kind, param string }{
		{`{"accessConfig":{"authenticationMode":"API"}}`, "AccessConfigUpdate", `{"type":"AuthenticationMode","value":"API"}`},
		{`{"logging":{"clusterLogging":[{"types":["scheduler"],"enabled":true}]}}`, "LoggingUpdate", `{\"types\":[\"scheduler\"],\"enabled\":true}`},
		{`{"resourcesVpcConfig":{"endpointPrivateAccess":true}}`, "EndpointAccessUpdate", `{"type":"EndpointPrivateAccess","value":"true"}`},
		{`{"resourcesVpcConfig":{"securityGroupIds":["` + groupHere + `"]}}`, "VpcConfigUpdate", `{"type":"SecurityGroups","value":"` + groupHere + `"}`},
		{`{"upgradePolicy":{"supportType":"STANDARD"}}`, "UpgradePolicyUpdate", `{"type":"UpgradePolicy","value":"STANDARD"}`},
		{`{"zonalShiftConfig":{"enabled":true}}`, "ZonalShiftConfigUpdate", `{"type":"ZonalShiftConfig","value":"{\"enabled\":true}"}`},
		{
			`{"kubeApiServerConfig":{"eventTtl":"30m"},"kubeSchedulerConfig":{"nodeResourcesFit":{"scoringStrategy":{"type":"MostAllocated"}}}}`, "ControlPlaneComponentConfigUpdate",
			`"params":[{"type":"KubeApiServerConfig","value":"{\"eventTtl\":\"30m\"}"},{"type":"KubeSchedulerConfig","value":"{\"nodeResourcesFit\":{\"scoringStrategy\":{\"type\":\"MostAllocated\"}}}"}]`,
		},
	} {
		id := made(t, w.ask("POST", path, c.body, 200, `"type":"`+c.kind+`"`, c.param))
		w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
		ids = append(ids, id)
	}
	var stored v1alpha1.UpdateList
	if err := w.api.List(t.Context(), &stored); err != nil || len(stored.Items) != len(ids) {
		t.Errorf("there are %d updates, want %d: %v", len(stored.Items), len(ids), err)
	}
	for _, u := range stored.Items {
		if l := u.Spec.Change.Logging; l != nil && fmt.Sprint(l.Types) != "[api audit scheduler]" {
			t.Errorf("logs %v", l.Types)
		}
		if g := u.Spec.Change.SecurityGroups; u.Spec.Type == v1alpha1.UpdateVPCConfig && (g == nil || fmt.Sprint(g.IDs) != "["+groupHere+"]") {
			t.Errorf("security groups %v", g)
		}
	}
	listed := ""
	for next, pages := "", 0; pages < 9; pages++ {
		var page struct {
			UpdateIDs []string
			NextToken string
		}
		if err := json.Unmarshal([]byte(w.ask("GET", "/clusters/Blue_1/updates?maxResults=2&nextToken="+next, "", 200)), &page); err != nil {
			t.Fatal(err)
		}
		listed += strings.Join(page.UpdateIDs, " ") + " "
		if next = page.NextToken; next == "" {
			break
		}
	}
	for _, id := range ids {
		if strings.Count(listed, id) != 1 {
			t.Errorf("update %s is listed %d times", id, strings.Count(listed, id))
		}
	}
	w.ask("GET", "/clusters/Blue_1/updates/none", "", 404, "No update found for ID: none")
	w.ask("GET", "/clusters/Blue_1/updates/00000000-0000-0000-0000-000000000000", "", 404, "ResourceNotFoundException")
	w.ask("GET", "/clusters/none/updates", "", 404, "No cluster found for name: none.")
	w.ask("GET", "/clusters/Blue_1/updates?addonName=x", "", 404, "No addon: x found in cluster: Blue_1")
	w.ask("GET", "/clusters/Blue_1/updates?addonName=coredns&nodegroupName=x", "", 400, "give nodegroupName or addonName")
	w.gate.Denies = true
	w.ask("POST", path, `{"deletionProtection":true}`, 403, "AccessDeniedException")
	w.ask("GET", "/clusters/Blue_1/updates", "", 403)
	w.ask("GET", "/clusters/Blue_1/updates/"+first, "", 403)
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:UpdateClusterConfig arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a eks:deletionprotection=true",
		"aws:resourcetag/team=a eks:authenticationmode=API", "aws:resourcetag/team=a eks:loggingtype/scheduler=true", "aws:resourcetag/team=a eks:endpointprivateaccess=true",
		"eks:DescribeUpdate arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

func TestUpdatesOfANodeGroup(t *testing.T) {
	const path = "/clusters/Blue_1/node-groups/Web_1/update-config"
	const scale = `{"scalingConfig":{"desiredSize":3},"clientRequestToken":"n1"}`
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", path, scale, 404, "No node group found for name: Web_1.")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200)
	w.ask("POST", path, `{"scalingConfig":{"desiredSize":4}}`, 400, "InvalidParameterException", "Desired capacity 4 can't be greater than max size 3")
	w.ask("POST", path, `{}`, 400, "InvalidParameterException", "The request changes nothing")
	for body, says := range map[string]string{
		`{"labels":{"addOrUpdateLabels":{"a":"b"},"removeLabels":["a"]}}`:                                                                     "cannot be both added and removed",
		`{"labels":{"addOrUpdateLabels":{"eks.amazonaws.com/nodegroup":"b"}}}`:                                                                "Label cannot contain reserved prefixes",
		`{"labels":{"addOrUpdateLabels":{"kubernetes.io/x":"b"}}}`:                                                                            "spec.labels",
		`{"taints":{"addOrUpdateTaints":[{"key":"a","effect":"NoExecute"}]}}`:                                                                 "The effect",
		`{"taints":{"addOrUpdateTaints":[{"key":"a","effect":"NO_EXECUTE"}],"removeTaints":[{"key":"a","value":"x","effect":"NO_EXECUTE"}]}}`: "cannot be both added and removed",
		`{"updateConfig":{"maxUnavailable":101}}`:                                                                                             "maxUnavailable must be from 1 to 100",
		`{"warmPoolConfig":{"enabled":true,"minSize":4}}`:                                                                                     "a warm pool is not larger than its node group",
		`{"warmPoolConfig":{"enabled":true,"maxGroupPreparedCapacity":4}}`:                                                                    "must be at most scalingConfig.maxSize, 3",
		`{"warmPoolConfig":{"enabled":true,"minSize":2,"maxGroupPreparedCapacity":1}}`:                                                        "must be at most maxGroupPreparedCapacity, 1",
		`{"warmPoolConfig":{"enabled":true,"poolState":"HIBERNATED"}}`:                                                                        "cannot hibernate",
		`{"warmPoolConfig":{"enabled":true,"poolState":"ASLEEP"}}`:                                                                            "spec.warmPool.poolState",
		`{"warmPoolConfig":{"minSize":1}}`:                                                                                                    "a warm pool that is not enabled",
		`{"labels":{}}`:                                                                                                                       "The request changes nothing",
	} {
		w.ask("POST", path, body, 400, "InvalidParameterException", says)
	}
	answer := w.ask("POST", path, scale, 200, `"type":"ConfigUpdate"`, `"params":[{"type":"DesiredSize","value":"3"}]`)
	if again := w.ask("POST", path, scale, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	id := made(t, answer)
	w.ask("POST", path, `{"scalingConfig":{"minSize":0}}`, 409, "ResourceInUseException", id)
	w.ask("GET", "/clusters/Blue_1", "", 200, `"status":"ACTIVE"`)
	w.ask("GET", "/clusters/Blue_1/updates", "", 200, `{"updateIds":[]}`) // of the cluster itself
	w.ask("GET", "/clusters/Blue_1/updates/"+id, "", 404)
	w.ask("GET", "/clusters/Blue_1/updates?nodegroupName=Web_1", "", 200, `{"updateIds":["`+id+`"]}`)
	w.ask("GET", "/clusters/Blue_1/updates/"+id+"?nodegroupName=Web_1", "", 200, `"status":"InProgress"`)
	u := &v1alpha1.Update{}
	slug := v1alpha1.ClusterSlug("Blue_1")
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: id}, u); err != nil || u.Spec.Change.Scaling == nil || u.Spec.Change.Scaling.MinSize != nil || *u.Spec.Change.Scaling.DesiredSize != 3 {
		t.Errorf("%+v, %v", u.Spec, err)
	}
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	w.ask("GET", "/clusters/Blue_1/node-groups/Web_1", "", 200, `"status":"CREATING"`)
	id = made(t, w.ask("POST", path, `{"labels":{"addOrUpdateLabels":{"tier":"gold"},"removeLabels":["pool","pool"]},"taints":{"addOrUpdateTaints":[{"key":"c","value":"d","effect":"NO_EXECUTE"}],`+
		`"removeTaints":[{"key":"a","value":"x","effect":"NO_SCHEDULE"}]}}`, 200, `{"type":"LabelsToAdd","value":"{\"tier\":\"gold\"}"}`, `{"type":"LabelsToRemove","value":"[\"pool\"]"}`,
		`{"type":"TaintsToAdd","value":"[{\"effect\":\"NO_EXECUTE\",\"key\":\"c\",\"value\":\"d\"}]"}`, `"type":"TaintsToRemove"`))
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: id}, u); err != nil || u.Spec.Change.Labels.Set["tier"] != "gold" || len(u.Spec.Change.Taints.Remove) != 1 {
		t.Errorf("%+v, %v", u.Spec, err)
	}
	// The updates of a group are not those of the next one of its name.
	w.ask("DELETE", "/clusters/Blue_1/node-groups/Web_1", "", 200)
	w.ask("POST", "/clusters/Blue_1/node-groups", strings.Replace(makeGroup, "g1", "g2", 1), 200)
	w.ask("GET", "/clusters/Blue_1/updates?nodegroupName=Web_1", "", 200, `{"updateIds":[]}`)
	w.ask("POST", path, strings.Replace(scale, "n1", "n2", 1), 200)
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "eks:UpdateNodegroupConfig arn:aws:eks:eu-west-1:000000000000:nodegroup/Blue_1/Web_1/00000000-0000-0000-0000-000000000003 aws:resourcetag/team=b") {
		t.Error(asked)
	}
}
