// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/coredns"
	"muster.dev/muster/internal/platform/release"
)

const (
	addonsPath  = "/clusters/Blue_1/addons"
	makeCoreDNS = `{"addonName":"coredns","configurationValues":"{\"replicaCount\":3}","resolveConflicts":"OVERWRITE","tags":{"team":"a"},"clientRequestToken":"a1"}`
)

var coreDNSVersion = coredns.Addon().Version

// addon reads an add-on as kubectl sees it.
func (w *world) addon(name string) *v1alpha1.Addon {
	w.t.Helper()
	found := &v1alpha1.Addon{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: name}, found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// settles has an add-on as its controller leaves it.
func (w *world) settles(name string, status v1alpha1.AddonStatus) {
	w.t.Helper()
	found := w.addon(name)
	found.Finalizers, found.Status = []string{v1alpha1.FinalizerAddon}, status
	if err := w.api.Update(w.t.Context(), found); err != nil {
		w.t.Fatal(err)
	}
}

func TestAddons(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", addonsPath, makeCoreDNS, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	w.ask("POST", addonsPath, makeCoreDNS, 400, "InvalidRequestException", "is not in ACTIVE status")
	w.served("Blue_1")
	w.ask("GET", addonsPath, "", 200, `{"addons":[]}`)
	w.ask("GET", addonsPath+"/coredns", "", 404, "ResourceNotFoundException", "No addon: coredns found in cluster: Blue_1", `"addonName":"coredns"`, `"clusterName":"Blue_1"`)
	answer := w.ask("POST", addonsPath, makeCoreDNS, 200, `"addonName":"coredns"`, `"status":"CREATING"`, `"addonVersion":"`+coreDNSVersion+`"`, `"clusterName":"Blue_1"`,
		`"addonArn":"arn:aws:eks:eu-west-1:000000000000:addon/Blue_1/coredns/00000000-`, `"health":{"issues":[]}`, `"tags":{"team":"a"}`, `"podIdentityAssociations":[]`,
		`"configurationValues":"{\"replicaCount\":3}"`, `"namespaceConfig":{"namespace":"kube-system"}`, `"publisher":"eks"`, `"createdAt":1800000000`)
	if again := w.ask("POST", addonsPath, makeCoreDNS, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	w.ask("POST", addonsPath, strings.Replace(makeCoreDNS, "a1", "a2", 1), 409, "ResourceInUseException", "Addon already exists.")
	if spec := w.addon("coredns").Spec; spec.ResolveConflicts != v1alpha1.ConflictsOverwrite || spec.Version != coreDNSVersion {
		t.Errorf("%+v", spec)
	}
	w.settles("coredns", v1alpha1.AddonStatus{Phase: v1alpha1.AddonDegraded, Version: coreDNSVersion, Issues: []v1alpha1.AddonIssue{{Code: "InsufficientNumberOfReplicas", Message: "why", ResourceIDs: []string{"coredns"}}}})
	w.ask("GET", addonsPath+"/coredns", "", 200, `"status":"DEGRADED"`, `"issues":[{"code":"InsufficientNumberOfReplicas","message":"why","resourceIds":["coredns"]}]`)
	w.settles("coredns", v1alpha1.AddonStatus{Phase: v1alpha1.AddonActive, Version: coreDNSVersion})
	w.ask("POST", addonsPath, `{"addonName":"metrics-server"}`, 200, `"status":"CREATING"`)
	w.ask("GET", addonsPath, "", 200, `{"addons":["coredns","metrics-server"]}`)
	w.ask("GET", addonsPath+"?maxResults=1", "", 200, `"addons":["coredns"]`, `"nextToken"`)

	tags := "/tags/" + url.PathEscape("arn:aws:eks:eu-west-1:000000000000:addon/Blue_1/coredns/"+string(w.addon("coredns").UID))
	w.ask("POST", tags, `{"tags":{"b":"2"}}`, 200)
	w.ask("GET", tags, "", 200, `{"tags":{"b":"2","team":"a"}}`)
	w.ask("DELETE", tags+"?tagKeys=b", "", 200)
	w.ask("GET", tags+"0", "", 404)

	w.gate.Denies = true
	for _, denied := range [][3]string{
		{"POST", addonsPath, makeCoreDNS},
		{"GET", addonsPath},
		{"GET", addonsPath + "/coredns"},
		{"DELETE", addonsPath + "/coredns"},
		{"POST", addonsPath + "/coredns/update", "{}"},
		{"GET", "/addons/supported-versions"},
		{"GET", "/addons/configuration-schemas?addonName=coredns&addonVersion=" + coreDNSVersion},
	} {
		w.ask(denied[0], denied[1], denied[2], 403, "AccessDeniedException")
	}
	w.gate.Denies = false
	w.ask("DELETE", addonsPath+"/coredns?preserve=true", "", 200, `"status":"DELETING"`)
	if found := w.addon("coredns"); !found.Spec.Preserve || found.DeletionTimestamp.IsZero() {
		t.Errorf("%+v", found)
	}
	w.ask("DELETE", addonsPath+"/coredns", "", 200, `"status":"DELETING"`)
	w.ask("GET", addonsPath+"/coredns", "", 200, `"status":"DELETING"`)
	w.ask("DELETE", addonsPath+"/metrics-server", "", 200)
	w.ask("DELETE", addonsPath+"/metrics-server", "", 404)
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreateAddon arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:requesttag/team=a aws:resourcetag/team=a aws:tagkeys=team",
		"eks:DescribeAddon arn:aws:eks:eu-west-1:000000000000:addon/Blue_1/coredns/*",
		"eks:DeleteAddon arn:aws:eks:eu-west-1:000000000000:addon/Blue_1/coredns/00000000-",
		"eks:ListAddons arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a",
		"eks:DescribeAddonVersions *",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

func TestAddonsThatCannotBe(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	for name, c := range map[string]struct{ body, says string }{
		"no such add-on":  {`{"addonName":"aws-ebs-csi-driver"}`, "Addon aws-ebs-csi-driver specified is not supported in 1.36 kubernetes version"},
		"another version": {`{"addonName":"coredns","addonVersion":"v1.8.7-eksbuild.1"}`, "Addon version specified is not supported"},
		"bad values":      {`{"addonName":"coredns","configurationValues":"{\"replicas\":3}"}`, "ConfigurationValue provided in request is not supported: Json schema validation failed with error: [$.replicas"},
		"what has none":   {`{"addonName":"vpc-cni","configurationValues":"{\"env\":{}}"}`, "[$.env"},
		"conflicts":       {`{"addonName":"coredns","resolveConflicts":"FORCE"}`, "must be NONE, OVERWRITE or PRESERVE"},
		"no role":         {`{"addonName":"vpc-cni","serviceAccountRoleArn":"arn:aws:iam::000000000000:role/none"}`, "does not exist"},
		"no ARN":          {`{"addonName":"vpc-cni","serviceAccountRoleArn":"none"}`, "is not the ARN of a role"},
		"associations":    {`{"addonName":"vpc-cni","podIdentityAssociations":[{"serviceAccount":"a","roleArn":"b"}]}`, "leave podIdentityAssociations out"},
		"a namespace":     {`{"addonName":"coredns","namespaceConfig":{"namespace":"other"}}`, "is in namespace kube-system"},
		"a bad tag":       {`{"addonName":"coredns","tags":{"aws:a":"b"}}`, "aws:"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.ask("POST", addonsPath, c.body, 400, "InvalidParameterException", c.says)
		})
	}
	w.t = t
	w.ask("POST", addonsPath, `{"addonName":"vpc-cni","serviceAccountRoleArn":"`+nodes+`","namespaceConfig":{"namespace":"kube-system"}}`, 200, `"serviceAccountRoleArn":"`+nodes+`"`)
	w.ask("GET", addonsPath, "", 200, `{"addons":["vpc-cni"]}`)
}

func TestUpdatesOfAnAddon(t *testing.T) {
	const path = addonsPath + "/coredns/update"
	const change = `{"configurationValues":"{}","resolveConflicts":"PRESERVE","clientRequestToken":"u1"}`
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", path, change, 404, "No addon: coredns found in cluster: Blue_1")
	w.ask("POST", addonsPath, makeCoreDNS, 200)
	w.ask("POST", path, change, 409, "ResourceInUseException", "Addon coredns cannot be updated as it is currently in CREATING state")
	w.settles("coredns", v1alpha1.AddonStatus{Phase: v1alpha1.AddonActive, Version: coreDNSVersion})
	w.ask("POST", path, `{"addonVersion":"v1.8.7-eksbuild.1"}`, 400, "Addon version specified is not supported")
	w.ask("POST", path, `{"configurationValues":"{\"a\":1}"}`, 400, "Json schema validation failed")
	answer := w.ask("POST", path, change, 200, `"status":"InProgress"`, `"type":"AddonUpdate"`, `{"type":"ResolveConflicts","value":"PRESERVE"}`, `{"type":"ConfigurationValues","value":"{}"}`)
	if again := w.ask("POST", path, change, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	w.ask("POST", path, strings.Replace(change, "u1", "u2", 1), 409, "cannot be updated as it is currently in UPDATING state")
	w.ask("GET", addonsPath+"/coredns", "", 200, `"status":"UPDATING"`)
	id := made(t, answer)
	var all v1alpha1.UpdateList
	if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d updates, %v", len(all.Items), err)
	}
	spec := all.Items[0].Spec
	if got := spec.Change.Addon; spec.Addon != "coredns" || *got.ConfigurationValues != "{}" || *got.Version != coreDNSVersion || *got.ServiceAccountRoleARN != "" || got.ResolveConflicts != v1alpha1.ConflictsPreserve {
		t.Errorf("%+v", spec)
	}
	w.ask("GET", "/clusters/Blue_1/updates/"+id+"?addonName=coredns", "", 200, `"type":"AddonUpdate"`)
	w.ask("GET", "/clusters/Blue_1/updates/"+id, "", 404, "No update found for ID")
	w.ask("GET", "/clusters/Blue_1/updates?addonName=coredns", "", 200, `{"updateIds":["`+id+`"]}`)
	w.ask("GET", "/clusters/Blue_1/updates", "", 200, `{"updateIds":[]}`)
	w.ask("POST", "/clusters/Blue_1/update-config", `{"deletionProtection":true}`, 200) // an update of an add-on is none of the cluster
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed, Errors: []v1alpha1.UpdateError{{ErrorCode: "ConfigurationConflict", ErrorMessage: "why"}}})
	w.ask("GET", addonsPath+"/coredns", "", 200, `"status":"ACTIVE"`)
	w.ask("POST", path, `{"serviceAccountRoleArn":"`+nodes+`"}`, 200, `{"type":"ServiceAccountRoleArn"`)
}

// Nobody gives an add-on a role that they may not pass.
func TestRoleOfAnAddonIsPassed(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	const passed = "iam:PassRole " + nodes + " iam:passedtoservice=eks.amazonaws.com"
	for _, step := range []struct {
		path, body string
		passes     bool
	}{
		{addonsPath, `{"addonName":"coredns"}`, false},
		{addonsPath, `{"addonName":"vpc-cni","serviceAccountRoleArn":"` + nodes + `"}`, true},
		{addonsPath + "/vpc-cni/update", `{"resolveConflicts":"NONE"}`, false},
		{addonsPath + "/vpc-cni/update", `{"serviceAccountRoleArn":"` + nodes + `"}`, true},
	} {
		if strings.HasSuffix(step.path, "/update") {
			w.settles("vpc-cni", v1alpha1.AddonStatus{Phase: v1alpha1.AddonActive})
		}
		w.gate.Asked = nil
		answer := w.ask("POST", step.path, step.body, 200)
		if got := slices.Contains(w.gate.Asked, passed); got != step.passes {
			t.Errorf("%s %s: IAM is asked %q", step.path, step.body, w.gate.Asked)
		}
		if strings.HasSuffix(step.path, "/update") {
			w.ends(made(t, answer), v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
		}
	}
}

func TestAddonVersions(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("GET", "/addons/supported-versions?kubernetesVersion=1.36&addonName=coredns", "", 200, `{"addons":[{"addonName":"coredns","type":"networking","addonVersions":[{"addonVersion":"`+coreDNSVersion+`"`,
		`"compatibilities":[{"clusterVersion":"1.36","platformVersions":["*"],"defaultVersion":true}]`, `"requiresConfiguration":false`, `"requiresIamPermissions":false`, `"publisher":"eks"`, `"owner":"aws"`, `"defaultNamespace":"kube-system"`)
	var names []string
	for _, known := range catalogue.New() {
		names = append(names, `"addonName":"`+known.Name+`"`)
	}
	w.ask("GET", "/addons/supported-versions", "", 200, names...)
	w.ask("GET", "/addons/supported-versions?kubernetesVersion=1.20", "", 200, `{"addons":[]}`)
	w.ask("GET", "/addons/supported-versions?kubernetesVersion=1.34&addonName=kube-proxy", "", 200, `"addonVersions":[{"addonVersion":"`+release.All()[0].Version+`-eksbuild.1"`,
		`"compatibilities":[{"clusterVersion":"1.34","platformVersions":["*"],"defaultVersion":true}]`)
	if all := w.ask("GET", "/addons/supported-versions?addonName=kube-proxy", "", 200); strings.Count(all, `"clusterVersion"`) != len(release.All()) {
		t.Error(all)
	}
	w.ask("GET", "/addons/supported-versions?types=security", "", 200, `{"addons":[{"addonName":"eks-pod-identity-agent"`)
	w.ask("GET", "/addons/supported-versions?publishers=other", "", 200, `{"addons":[]}`)
	w.ask("GET", "/addons/supported-versions?owners=other", "", 200, `{"addons":[]}`)
	w.ask("GET", "/addons/supported-versions?maxResults=1", "", 200, `"nextToken"`)
	w.ask("GET", "/addons/configuration-schemas?addonName=coredns&addonVersion="+coreDNSVersion, "", 200, `"configurationSchema":"{`, "replicaCount", `"podIdentityConfiguration":[]`)
	w.ask("GET", "/addons/configuration-schemas?addonName=coredns&addonVersion=v1.0.0-eksbuild.1", "", 404, "Configuration not found for addon: coredns")
	w.ask("GET", "/addons/configuration-schemas?addonName=coredns", "", 400, "addonVersion")
}
