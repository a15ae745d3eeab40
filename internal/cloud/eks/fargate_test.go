// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

const (
	podsRole    = "arn:aws:iam::000000000000:role/pods"
	makeProfile = `{"fargateProfileName":"Jobs_1","podExecutionRoleArn":"` + podsRole + `","subnets":["subnet-1"],"selectors":[{"namespace":"jobs","labels":{"app":"w*"}}],"tags":{"team":"b"},"clientRequestToken":"p1"}`
)

// profileReady has a profile as its controller leaves it.
func (w *world) profileReady(name string) {
	w.t.Helper()
	w.profileIs(name, "eks-pods", metav1.Condition{Status: metav1.ConditionTrue, Reason: "Active"})
}

// profileIs has a profile with an instance profile and a condition Ready.
func (w *world) profileIs(name, instanceProfile string, ready metav1.Condition) {
	w.t.Helper()
	p := &v1alpha1.FargateProfile{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: v1alpha1.FargateProfileSlug(name)}, p); err != nil {
		w.t.Fatal(err)
	}
	p.Finalizers = []string{v1alpha1.FinalizerFargateProfile}
	if err := w.api.Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	ready.Type, ready.LastTransitionTime = v1alpha1.ConditionReady, metav1.Now()
	p.Status.InstanceProfile, p.Status.Conditions = instanceProfile, []metav1.Condition{ready}
	if err := w.api.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

func TestALifeOfAFargateProfile(t *testing.T) {
	w := newWorld(t, nil, role("pods", "eks-fargate-pods.amazonaws.com"))
	const all = "/clusters/Blue_1/fargate-profiles"
	w.ask("POST", all, makeProfile, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	made := w.ask("POST", all, makeProfile, 200, `"status":"CREATING"`, `"selectors":[{"namespace":"jobs","labels":{"app":"w*"}}]`, `"podExecutionRoleArn":"`+podsRole+`"`,
		`"subnets":["subnet-1"]`, `"tags":{"team":"b"}`, `"fargateProfileArn":"arn:aws:eks:eu-west-1:000000000000:fargateprofile/Blue_1/Jobs_1/`, `"health":{"issues":[]}`)
	if again := w.ask("POST", all, makeProfile, 200); again != made {
		t.Errorf("sent twice: %s\nwas %s", again, made)
	}
	w.ask("POST", all, strings.Replace(makeProfile, "p1", "p2", 1), 409, "A Fargate Profile already exists with this name in this cluster.", "ResourceInUseException")
	other := strings.NewReplacer("Jobs_1", "other", "p1", "p3").Replace(makeProfile)
	w.ask("POST", all, other, 409, "Cannot create Fargate Profile other because cluster Blue_1 currently has Fargate profile Jobs_1 in status CREATING", "ResourceInUseException")
	w.profileReady("Jobs_1")
	w.ask("GET", all+"/Jobs_1", "", 200, `"status":"ACTIVE"`)
	w.ask("GET", all, "", 200, `{"fargateProfileNames":["Jobs_1"]}`)
	w.ask("GET", all+"/none", "", 404, "No Fargate Profile found with name: none.", `"fargateProfileName":"none"`)
	w.ask("POST", all, other, 200)
	w.ask("DELETE", all+"/Jobs_1", "", 409, "Cannot delete Fargate Profile Jobs_1 because cluster Blue_1 currently has Fargate profile other in status CREATING")
	w.profileReady("other")
	w.ask("DELETE", "/clusters/Blue_1", "", 409, "Cluster has Fargate profiles attached: delete ")
	w.ask("DELETE", all+"/Jobs_1", "", 200, `"status":"DELETING"`)
	w.ask("DELETE", all+"/Jobs_1", "", 200, `"status":"DELETING"`)
	w.ask("DELETE", all+"/other", "", 409, "currently has Fargate profile Jobs_1 in status DELETING")
	arn := "arn:aws:eks:eu-west-1:000000000000:fargateprofile/Blue_1/other/"
	_, rest, _ := strings.Cut(w.ask("GET", all+"/other", "", 200), arn)
	uid, _, _ := strings.Cut(rest, `"`)
	w.ask("POST", "/tags/"+strings.ReplaceAll(arn+uid, "/", "%2F"), `{"tags":{"team":"c"}}`, 200)
	w.ask("GET", all+"/other", "", 200, `"tags":{"team":"c"}`)
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreateFargateProfile arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 ", "iam:PassRole " + podsRole + " iam:passedtoservice=eks-fargate-pods.amazonaws.com",
		"eks:DescribeFargateProfile arn:aws:eks:eu-west-1:000000000000:fargateprofile/Blue_1/none/*",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

func TestFargateProfilesThatAreRefused(t *testing.T) {
	w := newWorld(t, nil, role("pods", "eks-fargate-pods.amazonaws.com"))
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	for name, c := range map[string]struct{ old, new, says string }{
		"a name":               {"Jobs_1", "jobs-", "The Fargate profile name"},
		"a reserved name":      {"Jobs_1", "eks-jobs", "it cannot begin with the reserved prefix eks-"},
		"no selector":          {`{"namespace":"jobs","labels":{"app":"w*"}}`, "", "FargateProfile must have at least one selector."},
		"six selectors":        {`"selectors":[`, `"selectors":[{"namespace":"a"},{"namespace":"a"},{"namespace":"a"},{"namespace":"a"},{"namespace":"a"},`, "Request contains too many Fargate profile selectors: 6, at most 5"},
		"no namespace":         {`"namespace":"jobs",`, "", "Selector 1 is not valid: it has no namespace"},
		"no such namespace":    {`"jobs"`, `"Jobs"`, "cannot be that of a pod"},
		"six labels":           {`"app":"w*"`, `"a":"","b":"","c":"","d":"","e":"","f":""`, "it has 6 labels, and may have 5"},
		"a label's key":        {`"app"`, `"a b"`, "the key of its label"},
		"a label's value":      {`"w*"`, `"w w"`, "of its label app cannot be one of a pod"},
		"no such role":         {"role/pods", "role/none", "does not exist"},
		"no role":              {podsRole, "pods", "is not the ARN of a role"},
		"a role without trust": {"role/pods", "role/nodes", "Misconfigured PodExecutionRole Trust Policy; Please add the eks-fargate-pods.amazonaws.com Service Principal"},
		"a public subnet":      {"subnet-1", "subnet-2", "Subnet subnet-2 provided in Fargate Profile is not a private subnet: its route table rtb-1 has a route to the internet gateway igw-1"},
		"another VPC's":        {"subnet-1", "subnet-4", "must be of the cluster's VPC"},
		"no such subnet":       {"subnet-1", "subnet-9", "The subnet ID 'subnet-9' does not exist"},
		"a tag of AWS's":       {`"team"`, `"aws:team"`, "aws:"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			body := strings.Replace(makeProfile, c.old, c.new, 1)
			if body == makeProfile {
				t.Fatal("nothing is replaced")
			}
			w.ask("POST", "/clusters/Blue_1/fargate-profiles", body, 400, `"__type":"InvalidParameterException"`, c.says)
		})
	}
	var all v1alpha1.FargateProfileList
	if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) != 0 {
		t.Errorf("there are %d profiles, %v", len(all.Items), err)
	}
	w = newWorld(t, func(c *Config) { c.LocalMachines = false }, role("pods", "eks-fargate-pods.amazonaws.com"))
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/fargate-profiles", makeProfile, 400, "This service runs without root")
}

// eksctl names no subnets, and its clusters have public and private ones.
func TestAFargateProfileTakesThePrivateSubnetsOfItsCluster(t *testing.T) {
	w := newWorld(t, nil, role("pods", "eks-fargate-pods.amazonaws.com"))
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/fargate-profiles", strings.Replace(makeProfile, `"subnets":["subnet-1"],`, "", 1), 200, `"subnets":["subnet-1"]`)
}

// A profile whose role cannot be used says so in its health, in EKS's codes. A cause that passes by itself is no issue.
func TestHealthOfAFargateProfile(t *testing.T) {
	w := newWorld(t, nil, role("pods", "eks-fargate-pods.amazonaws.com"))
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	const one = "/clusters/Blue_1/fargate-profiles/Jobs_1"
	w.ask("POST", "/clusters/Blue_1/fargate-profiles", makeProfile, 200)
	fails := func(reason string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: "because"}
	}
	for _, code := range []string{v1alpha1.ReasonPodExecutionRole, v1alpha1.ReasonPodExecutionRoleInUse} {
		issue := `"health":{"issues":[{"code":"` + code + `","message":"because","resourceIds":["` + podsRole + `"]}]}`
		w.profileIs("Jobs_1", "", fails(code))
		w.ask("GET", one, "", 200, `"status":"CREATE_FAILED"`, issue)
		w.profileIs("Jobs_1", "eks-pods", fails(code))
		w.ask("GET", one, "", 200, `"status":"ACTIVE"`, issue)
	}
	w.profileIs("Jobs_1", "", fails("Creating"))
	w.ask("GET", one, "", 200, `"status":"CREATING"`, `"health":{"issues":[]}`)
	w.profileIs("Jobs_1", "eks-pods", fails("Creating"))
	w.ask("GET", one, "", 200, `"status":"ACTIVE"`, `"health":{"issues":[]}`)
}
