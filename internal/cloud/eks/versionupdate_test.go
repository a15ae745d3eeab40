// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/cluster/insight"
)

func (w *world) storedUpdate(id string) *v1alpha1.Update {
	w.t.Helper()
	u := &v1alpha1.Update{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: id}, u); err != nil {
		w.t.Fatal(err)
	}
	return u
}

func TestVersionsOfANodeGroup(t *testing.T) {
	const path = "/clusters/Blue_1/node-groups/Web_1/update-version"
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", path, `{}`, 404, "No node group found for name: Web_1.")
	if err := w.api.Create(t.Context(), aTemplate()); err != nil {
		t.Fatal(err)
	}
	w.ask("POST", "/clusters/Blue_1/node-groups", strings.Replace(makeGroup, `"instanceTypes":["m5.large"]`, `"launchTemplate":{"name":"web","version":"1"}`, 1), 200)
	w.ask("POST", "/clusters/Blue_1/node-groups", strings.Replace(strings.Replace(makeGroup, "g1", "g9", 1), "Web_1", "plain", 1), 200)
	for body, says := range map[string]string{
		`{}`:                          "is already at release version",
		`{"version":"1.20"}`:          "Requested Nodegroup version",
		`{"releaseVersion":"1.20-1"}`: "Requested release version",
		`{"launchTemplate":{"name":"web","version":"1"}}`: "is already at version 1",
		`{"launchTemplate":{"name":"web","version":"2"}}`: "names no instance type",
		`{"launchTemplate":{"name":"web","version":"9"}}`: "9",
		`{"launchTemplate":{"name":"none"}}`:              "none",
	} {
		w.ask("POST", path, body, 400, says)
	}
	w.ask("POST", strings.Replace(path, "Web_1", "plain", 1), `{"launchTemplate":{"name":"web","version":"1"}}`, 400, "was not made with a launch template")

	// A new version of the template.
	template := aTemplate()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		t.Fatal(err)
	}
	five := *template.Spec.Versions[0].DeepCopy()
	five.Number, template.Spec.LatestVersion = 5, 5
	template.Spec.Versions = append(template.Spec.Versions, five)
	if err := w.api.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	const roll = `{"launchTemplate":{"name":"web","version":"$Latest"},"clientRequestToken":"v1"}`
	answer := w.ask("POST", path, roll, 200, `"type":"VersionUpdate"`, `"status":"InProgress"`, `{"type":"LaunchTemplateVersion","value":"5"}`, `{"type":"Version","value":"1.36"}`)
	if again := w.ask("POST", path, roll, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	id := made(t, answer)
	if u := w.storedUpdate(id); u.Spec.Change.Rollout == nil || u.Spec.Change.Rollout.Force || u.Spec.Change.Rollout.LaunchTemplate.Version != 5 || u.Spec.NodeGroup != "Web_1" {
		t.Errorf("%+v", u.Spec)
	}
	w.ask("POST", path, `{"force":true}`, 409, "ResourceInUseException")

	cancel := "/clusters/Blue_1/updates/" + id + "/cancel-update"
	describe := strings.TrimSuffix(cancel, "/cancel-update") + "?nodegroupName=Web_1"
	if said := w.ask("GET", describe, "", 200); strings.Contains(said, "cancellation") {
		t.Error(said)
	}
	w.ask("POST", cancel, `{}`, 200, id, `"cancellation":{"status":"InProgress"`)
	if u := w.storedUpdate(id); u.Annotations[v1alpha1.AnnotationCancel] != "true" {
		t.Errorf("%+v", u.Annotations)
	}
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateCancelled})
	w.ask("POST", cancel, `{}`, 400, "InvalidRequestException", "cannot be cancelled: it is Cancelled")
	w.ask("GET", describe, "", 200, `"status":"Cancelled"`, `"cancellation":{"status":"Successful"`)
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed})
	w.ask("GET", describe, "", 200, `"status":"Failed"`, `"cancellation":{"status":"Failed","reason":"The change was made before the update could be cancelled"}`)
	w.ask("POST", "/clusters/Blue_1/updates/none/cancel-update", `{}`, 404, "No update found for ID: none")

	// Machines of an earlier template are to be replaced without more ado, and others by force.
	id = made(t, w.ask("POST", path, `{"force":true}`, 200))
	if u := w.storedUpdate(id); !u.Spec.Change.Rollout.Force || u.Spec.Change.Rollout.LaunchTemplate != nil {
		t.Errorf("%+v", u.Spec)
	}
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	group := &v1alpha1.NodeGroup{}
	slug := v1alpha1.ClusterSlug("Blue_1")
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: v1alpha1.NodeGroupSlug("Web_1")}, group); err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1alpha1.MachineSpec{NodeGroup: "Web_1", NodeGroupUID: group.UID}}
	if err := w.api.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	id = made(t, w.ask("POST", path, `{}`, 200, "VersionUpdate"))
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})

	// Machines of an earlier minor.
	older, _ := ami.Recommended("1.35")
	w.ask("POST", path, `{"version":"1.37"}`, 400, "machines of 1.37 would be newer than their cluster, which runs 1.36")
	w.ask("POST", path, `{"version":"1.34"}`, 400, "make kubernetes MINOR=1.34")
	w.ask("POST", path, `{"version":"1.35","releaseVersion":"1.36.4-20261122"}`, 400, "Muster has machines of release "+older.ReleaseVersion)
	id = made(t, w.ask("POST", path, `{"version":"1.35"}`, 200, `{"type":"Version","value":"1.35"}`, `{"type":"ReleaseVersion","value":"`+older.ReleaseVersion+`"}`))
	if u := w.storedUpdate(id); u.Spec.Change.Rollout.Version != "1.35" {
		t.Errorf("%+v", u.Spec)
	}
	// eksctl and CloudFormation name the release alone.
	w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	w.ask("POST", path, `{"releaseVersion":"1.35"}`, 400, "release version", "is not valid")
	w.ask("POST", path, `{"releaseVersion":"1.35.0-20200101"}`, 400, "Muster has machines of release "+older.ReleaseVersion)
	id = made(t, w.ask("POST", path, `{"releaseVersion":"`+older.ReleaseVersion+`"}`, 200, `{"type":"Version","value":"1.35"}`, `{"type":"ReleaseVersion","value":"`+older.ReleaseVersion+`"}`))
	if u := w.storedUpdate(id); u.Spec.Change.Rollout.Version != "1.35" {
		t.Errorf("%+v", u.Spec)
	}
	w.ask("POST", "/clusters/Blue_1/node-groups", strings.Replace(strings.Replace(strings.Replace(makeGroup, "g1", "g8", 1), "Web_1", "old", 1), `"nodeRole"`, `"version":"1.35","nodeRole"`, 1), 200,
		`"version":"1.35"`, `"releaseVersion":"`+older.ReleaseVersion+`"`)
	w.gate.Denies = true
	w.ask("POST", path, roll, 403)
	w.ask("POST", cancel, `{}`, 403)
}

func TestVersionsOfACluster(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters/Blue_1/updates", `{"version":"1.37"}`, 404)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	for version, says := range map[string]string{
		"1.36": "already at version 1.36", "1.33": `unsupported Kubernetes version \"1.33\": there is 1.34, `, "": "unsupported Kubernetes version",
		"1.34": "Unsupported Kubernetes minor version update from 1.36 to 1.34", "1.37": "make kubernetes MINOR=1.37",
	} {
		w.ask("POST", "/clusters/Blue_1/updates", `{"version":"`+version+`"}`, 400, "InvalidParameterException", says)
	}
	w.built["1.37"] = true
	answer := w.ask("POST", "/clusters/Blue_1/updates", `{"version":"1.37","clientRequestToken":"u1"}`, 200, `"type":"VersionUpdate"`, `{"type":"Version","value":"1.37"}`, `"PlatformVersion"`)
	if again := w.ask("POST", "/clusters/Blue_1/updates", `{"version":"1.37","clientRequestToken":"u1"}`, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	if u := w.storedUpdate(made(t, answer)); u.Spec.Change.Version != "1.37" || u.Spec.NodeGroup != "" {
		t.Errorf("%+v", u.Spec)
	}
	w.ask("POST", "/clusters/Blue_1/updates", `{"version":"1.37"}`, 409, "ResourceInUseException")
	w.ends(made(t, answer), v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed})

	// A refusal is told; insights are overridden by force.
	const path = "/clusters/Blue_1/updates"
	w.refusal = "spec.version: machines keep the cluster from 1.37"
	w.ask("POST", path, `{"version":"1.37","force":true}`, 400, "InvalidParameterException", `"message":"version: machines keep the cluster from 1.37"`)
	w.refusal, w.away = "", errors.New("the management plane is away")
	w.ask("POST", path, `{"version":"1.37","force":true}`, 503, "ServiceUnavailableException")
	w.away, w.against = nil, []insight.Insight{{Name: "Disk space", Finding: insight.Finding{Status: insight.Error, Reason: "it is full"}, Resources: []insight.Resource{{Finding: insight.Finding{Status: insight.Error}, URI: "/api/v1/nodes/a"}}}}
	w.ask("POST", path, `{"version":"1.37"}`, 400, "InvalidStateException", "Insights are against version 1.37 (M-UPDATE-71): Disk space: it is full (/api/v1/nodes/a)", "force")
	w.ask("POST", path, `{"version":"1.37","rollbackConfig":{"timeoutMinutes":720}}`, 400, "InvalidParameterException", "leave it out")
	forced := made(t, w.ask("POST", path, `{"version":"1.37","force":true}`, 200, `"type":"VersionUpdate"`))
	if u := w.storedUpdate(forced); !u.Spec.Change.Force || u.Spec.Change.RollbackTimeoutMinutes != nil {
		t.Errorf("%+v", u.Spec.Change)
	}
	w.ends(forced, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed})
	w.against = nil

	// The way back.
	for minutes, says := range map[int]string{119: "timeoutMinutes is 119: it must be from 120 to 10080", 10081: "10081", 0: "is 0"} {
		w.ask("POST", path, fmt.Sprintf(`{"version":"1.35","rollbackConfig":{"timeoutMinutes":%d}}`, minutes), 400, "InvalidParameterException", says)
	}
	for config, minutes := range map[string]int32{"": 720, `,"rollbackConfig":{}`: 720, `,"rollbackConfig":{"timeoutMinutes":120}`: 120, `,"rollbackConfig":{"timeoutMinutes":10080}`: 10080} {
		id := made(t, w.ask("POST", path, `{"version":"1.35"`+config+`}`, 200, `"type":"VersionRollback"`, `{"type":"Version","value":"1.35"}`))
		if u := w.storedUpdate(id); u.Spec.Change.Version != "1.35" || u.Spec.Change.RollbackTimeoutMinutes == nil || *u.Spec.Change.RollbackTimeoutMinutes != minutes {
			t.Errorf("%+v", u.Spec.Change)
		}
		w.ends(id, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	}
	protect := made(t, w.ask("POST", "/clusters/Blue_1/update-config", `{"deletionProtection":true}`, 200))
	w.ends(protect, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateInProgress, AppliedAt: new(metav1.Now())})
	w.ask("POST", "/clusters/Blue_1/updates/"+protect+"/cancel-update", `{}`, 400, "InvalidRequestException", "has been made")
	w.gate.Denies = true
	w.ask("POST", "/clusters/Blue_1/updates", `{"version":"1.37"}`, 403)
}

func TestAssociateEncryptionConfig(t *testing.T) {
	const path = "/clusters/Blue_1/encryption-config/associate"
	right := `{"encryptionConfig":[{"resources":["secrets"],"provider":{"keyArn":"` + kmsKey + `"}}],"clientRequestToken":"e1"}`
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.ask("POST", path, right, 409, "is not in ACTIVE status")
	w.served("Blue_1")
	w.ask("POST", path, `{"encryptionConfig":[]}`, 400, "encryptionConfig is empty")
	w.ask("POST", path, strings.Replace(right, kmsKey, "other", 1), 400, "cannot be used")
	answer := w.ask("POST", path, right, 200, `"type":"AssociateEncryptionConfig"`, kmsKey)
	if again := w.ask("POST", path, right, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	if u := w.storedUpdate(made(t, answer)); u.Spec.Change.EncryptionKeyARN != kmsKey {
		t.Errorf("%+v", u.Spec)
	}
	var asked struct{ List []string }
	asked.List = w.gate.Asked
	if text, _ := json.Marshal(asked); !strings.Contains(string(text), "eks:AssociateEncryptionConfig arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a eks:encryptionconfigproviderkeyarns="+kmsKey) {
		t.Error(string(text))
	}
}

func TestListsThatAreAlwaysEmpty(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	for path, want := range map[string]string{
		"/clusters/Blue_1/fargate-profiles":          `{"fargateProfileNames":[]}`,
		"/clusters/Blue_1/capabilities":              `{"capabilities":[]}`,
		"/clusters/Blue_1/identity-provider-configs": `{"identityProviderConfigs":[]}`,
	} {
		w.ask("GET", path, "", 200, want)
		w.ask("GET", path+"?maxResults=10", "", 200, want)
		w.ask("GET", strings.Replace(path, "Blue_1", "none", 1), "", 404, "No cluster found for name: none.")
		w.ask("GET", path+"?nextToken=x", "", 400)
	}
	w.ask("GET", "/eks-anywhere-subscriptions?includeStatus=ACTIVE", "", 200, `{"subscriptions":[]}`)
	w.gate.Denies = true
	w.ask("GET", "/clusters/Blue_1/fargate-profiles", "", 403)
	w.ask("GET", "/eks-anywhere-subscriptions", "", 403)
}

// A feature that is off is not refused. Features that no cluster has are not told of.
func TestFeaturesThatAreOff(t *testing.T) {
	w := newWorld(t, nil)
	off := `"computeConfig":{"enabled":false},"storageConfig":{"blockStorage":{"enabled":false}},"zonalShiftConfig":{"enabled":false},"tags"`
	if answer := w.ask("POST", "/clusters", strings.Replace(makeOne, `"tags"`, off, 1), 200); strings.Count(answer, "Config\":{\"enabled") != 1 || !strings.Contains(answer, `"zonalShiftConfig":{"enabled":false}`) {
		t.Error(answer)
	}
	if answer := w.ask("POST", "/clusters", strings.NewReplacer("Blue_1", "Blue_2", `"tags"`, `"zonalShiftConfig":{"enabled":true},"tags"`).Replace(makeOne), 200); !strings.Contains(answer, `"zonalShiftConfig":{"enabled":true}`) {
		t.Error(answer)
	}
	if asked := strings.Join(w.gate.Asked, " "); !strings.Contains(asked, "eks:blockstorageenabled=false") || !strings.Contains(asked, "eks:computeconfigenabled=false") || !strings.Contains(asked, "eks:zonalshiftenabled=false") {
		t.Error(asked)
	}
}
