// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

const podRole = "arn:aws:iam::000000000000:role/pods"

var associationID = regexp.MustCompile(`^a-[0-9a-z]{17}$`)

// podRoleOf lets pods in by the actions.
func podRoleOf(name string, actions ...string) *v1alpha1.IAMRole {
	r := role(name, passrole.Pods)
	list, _ := json.Marshal(actions)
	r.Spec.TrustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + passrole.Pods + `"},"Action":` + string(list) + `}]}`
	return r
}

func TestPodIdentityAssociations(t *testing.T) {
	const path = "/clusters/Blue_1/pod-identity-associations"
	const makeOne1 = `{"namespace":"team-a","serviceAccount":"web","roleArn":"` + podRole + `","tags":{"team":"a"},"clientRequestToken":"p1"}`
	w := newWorld(t, nil, podRoleOf("pods", "sts:AssumeRole", "sts:TagSession"), podRoleOf("untagged", "sts:AssumeRole"))
	w.ask("POST", path, makeOne1, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	answer := w.ask("POST", path, makeOne1, 200, `"clusterName":"Blue_1","namespace":"team-a","serviceAccount":"web","roleArn":"`+podRole+`"`, `"disableSessionTags":false`, `"createdAt":1800000000`, `"tags":{"team":"a"}`)
	if again := w.ask("POST", path, makeOne1, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	var out struct {
		Association struct{ AssociationID, AssociationARN string }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || !associationID.MatchString(out.Association.AssociationID) {
		t.Fatal(answer, err)
	}
	id, arn := out.Association.AssociationID, out.Association.AssociationARN
	if arn != "arn:aws:eks:eu-west-1:000000000000:podidentityassociation/Blue_1/"+id || strings.Contains(answer, "externalId") || strings.Contains(answer, "ownerArn") {
		t.Error(answer)
	}
	w.ask("POST", path, strings.Replace(makeOne1, "p1", "p2", 1), 409, "ResourceInUseException", "Association already exists: "+id)
	w.ask("POST", path, strings.Replace(makeOne1, `"web"`, `"api"`, 1), 400, "earlier request with other parameters")
	for name, c := range map[string]struct{ old, new, says string }{
		"no such role":      {podRole, podRole + "x", "Role provided in the request does not exist"},
		"a stranger's role": {podRole, eksRole, "Trust policy of the role"},
		"no tags of it":     {podRole, "arn:aws:iam::000000000000:role/untagged", "sts:TagSession"},
		"no role":           {podRole, "pods", "is not the ARN of a role"},
		"no namespace":      {"team-a", "Team_A", "The namespace"},
		"no account":        {`"web"`, `"We b"`, "The serviceAccount"},
		"no target":         {`"tags"`, `"targetRoleArn":"x","tags"`, "targetRoleArn"},
		"a policy alone":    {`"tags"`, `"policy":"{}","tags"`, "disableSessionTags must be true"},
		"no policy":         {`"tags"`, `"policy":"{","disableSessionTags":true,"tags"`, "The policy is not valid"},
		"a tag of AWS's":    {`"team"`, `"aws:team"`, "aws:"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			body := strings.Replace(strings.Replace(makeOne1, `"web"`, `"other"`, 1), c.old, c.new, 1)
			if name == "no account" {
				body = strings.Replace(makeOne1, c.old, c.new, 1)
			}
			w.ask("POST", path, strings.Replace(body, "p1", "p3", 1), 400, "InvalidParameterException", c.says)
		})
	}
	w.t = t
	w.ask("POST", path, `{"namespace":"team-b","serviceAccount":"web","roleArn":"arn:aws:iam::000000000000:role/untagged","disableSessionTags":true,"targetRoleArn":"arn:aws:iam::111111111111:role/far"}`, 200,
		`"externalId":"eu-west-1/000000000000/Blue_1/team-b/web"`, `"disableSessionTags":true`)
	w.ask("GET", path+"?namespace=team-a", "", 200, `{"associations":[{"clusterName":"Blue_1","namespace":"team-a","serviceAccount":"web","associationArn":"`+arn+`","associationId":"`+id+`"}]}`)
	if all := w.ask("GET", path, "", 200); strings.Count(all, "associationId") != 2 {
		t.Error(all)
	}
	w.ask("GET", path+"?serviceAccount=none", "", 200, `{"associations":[]}`)
	w.ask("GET", path+"/"+id, "", 200, `"associationId":"`+id+`"`)
	w.ask("GET", path+"/a-00000000000000000", "", 404, "ResourceNotFoundException", "No pod identity association found for id")
	w.ask("GET", path+"/x", "", 404)
	w.ask("POST", path+"/"+id, `{"disableSessionTags":true,"policy":"{\"Version\":\"2012-10-17\",\"Statement\":[]}","targetRoleArn":"`+podRole+`"}`, 400, "The policy is not valid")
	w.ask("POST", path+"/"+id, `{"disableSessionTags":true,"targetRoleArn":"`+podRole+`"}`, 200, `"targetRoleArn":"`+podRole+`"`, `"disableSessionTags":true`, "externalId")
	if cleared := w.ask("POST", path+"/"+id, `{"targetRoleArn":""}`, 200, `"disableSessionTags":true`); strings.Contains(cleared, "targetRoleArn") {
		t.Error(cleared)
	}
	tags := "/tags/" + url.PathEscape(arn)
	w.ask("POST", tags, `{"tags":{"cost":"1"}}`, 200)
	w.ask("GET", tags, "", 200, `{"tags":{"cost":"1","team":"a"}}`)
	w.gate.Denies = true
	for _, c := range [][2]string{{"POST", path}, {"GET", path}, {"GET", path + "/" + id}, {"POST", path + "/" + id}, {"DELETE", path + "/" + id}} {
		body := ""
		if c[0] == "POST" {
			body = strings.Replace(makeOne1, "p1", "p4", 1)
			if c[1] != path {
				body = `{"disableSessionTags":false}`
			}
		}
		w.ask(c[0], c[1], body, 403, "AccessDeniedException")
	}
	w.gate.Denies = false
	w.ask("DELETE", path+"/"+id, "", 200, `"associationId":"`+id+`"`)
	w.ask("DELETE", path+"/"+id, "", 404)
	w.ask("GET", tags, "", 404, "NotFoundException")
	w.ask("POST", path, makeOne1, 200) // the token is forgotten with what it made
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreatePodIdentityAssociation arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:requesttag/team=a aws:resourcetag/team=a aws:tagkeys=team",
		"iam:PassRole " + podRole + " iam:associatedresourcearn=arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 iam:passedtoservice=pods.eks.amazonaws.com",
		fmt.Sprintf("eks:DeletePodIdentityAssociation %s aws:resourcetag/cost=1 aws:resourcetag/team=a", arn), "eks:ListPodIdentityAssociations arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

// Trust policies have conditions, which are asked with what is known before there is a pod.
func TestAssociationsOfRolesWithConditions(t *testing.T) {
	const path = "/clusters/Blue_1/pod-identity-associations"
	conditional := func(name, condition string) *v1alpha1.IAMRole {
		r := podRoleOf(name, "sts:AssumeRole", "sts:TagSession")
		r.Spec.TrustPolicy = strings.Replace(r.Spec.TrustPolicy, `"Action"`, `"Condition":{"StringEquals":`+condition+`},"Action"`, 1)
		return r
	}
	far := podRoleOf("far", "sts:AssumeRole", "sts:TagSession")
	far.Spec.Account, far.Spec.ARN = "111111111111", "arn:aws:iam::111111111111:role/far"
	w := newWorld(t, nil, far,
		conditional("source", `{"aws:SourceArn":"arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1","aws:SourceAccount":"000000000000"}`),
		conditional("elsewhere", `{"aws:SourceArn":"arn:aws:eks:eu-west-1:000000000000:cluster/Other"}`),
		conditional("tags", `{"aws:RequestTag/kubernetes-namespace":"team-a","aws:RequestTag/eks-cluster-name":"Blue_1"}`),
	)
	w.ask("POST", "/clusters", makeOne, 200)
	for i, c := range []struct {
		role   string
		status int
		says   string
	}{
		{"000000000000:role/source", 200, ""},
		{"000000000000:role/tags", 200, ""},
		{"000000000000:role/elsewhere", 400, "Trust policy"},
		{"111111111111:role/far", 400, "of another account"},
	} {
		w.ask("POST", path, fmt.Sprintf(`{"namespace":"team-a","serviceAccount":"app-%d","roleArn":"arn:aws:iam::%s"}`, i, c.role), c.status, c.says)
	}
}
