// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

func TestAccessEntries(t *testing.T) {
	team := role("team", "ec2.amazonaws.com")
	team.Spec.RoleID = "AROA1"
	w := newWorld(t, nil, team, &v1alpha1.IAMUser{})
	w.ask("POST", "/clusters", makeOne, 200)
	const make1 = `{"principalArn":"arn:aws:iam::000000000000:role/team","kubernetesGroups":["devs"],"tags":{"team":"a"},"clientRequestToken":"e1"}`
	const path = "/clusters/Blue_1/access-entries"
	w.ask("POST", path, make1, 400, "is not in ACTIVE status")
	w.served("Blue_1")
	made := w.ask("POST", path, make1, 200, `"clusterName":"Blue_1"`, `"kubernetesGroups":["devs"]`, `"type":"STANDARD"`, `"tags":{"team":"a"}`,
		`"username":"arn:aws:sts::000000000000:assumed-role/team/{{SessionName}}"`, `"accessEntryArn":"arn:aws:eks:eu-west-1:000000000000:access-entry/Blue_1/role/000000000000/team/`)
	if again := w.ask("POST", path, make1, 200); again != made {
		t.Errorf("sent twice: %s\nwas %s", again, made)
	}
	w.ask("POST", path, strings.Replace(make1, "e1", "e2", 1), 409, "The specified access entry resource is already in use on this cluster.")
	w.ask("POST", path, `{"principalArn":"arn:aws:iam::000000000000:role/none"}`, 400, "InvalidParameterException", "invalid principal")
	var list accessv1alpha1.AccessEntryList
	if err := w.cluster.List(t.Context(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Spec.PrincipalID != "AROA1" {
		t.Fatalf("%+v, %v", list.Items, err)
	}
	one := path + "/" + url.PathEscape("arn:aws:iam::000000000000:role/team")
	w.ask("GET", one, "", 200, `"principalArn":"arn:aws:iam::000000000000:role/team"`)
	w.ask("POST", one, `{"kubernetesGroups":[],"username":"x"}`, 200, `"kubernetesGroups":[]`, `"username":"x"`)
	w.ask("GET", path, "", 200, `{"accessEntries":["arn:aws:iam::000000000000:role/team"]}`)

	w.ask("POST", one+"/access-policies", `{"policyArn":"`+viewPolicy+`","accessScope":{"type":"namespace","namespaces":["dev"]}}`, 200, `"accessScope":{"type":"namespace","namespaces":["dev"]}`)
	w.ask("POST", one+"/access-policies", `{"policyArn":"`+viewPolicy+`","accessScope":{"type":"cluster"}}`, 200, `"accessScope":{"type":"cluster","namespaces":[]}`)
	w.ask("POST", one+"/access-policies", `{"policyArn":"`+viewPolicy+`x","accessScope":{"type":"cluster"}}`, 400, "is not known")
	w.ask("GET", one+"/access-policies", "", 200, `"associatedAccessPolicies":[{"policyArn":"`+viewPolicy+`","accessScope":{"type":"cluster"`)
	w.ask("GET", path+"?associatedPolicyArn="+url.QueryEscape(viewPolicy), "", 200, "role/team")
	w.ask("GET", path+"?associatedPolicyArn=other", "", 200, `"accessEntries":[]`)
	w.ask("DELETE", one+"/access-policies/"+url.PathEscape(viewPolicy), "", 200, "{}")
	w.ask("DELETE", one+"/access-policies/"+url.PathEscape(viewPolicy), "", 404)
	w.ask("GET", "/access-policies", "", 200, `{"accessPolicies":[{"name":"AmazonEKSViewPolicy","arn":"`+viewPolicy+`"}]}`)

	tags := "/tags/" + url.PathEscape("arn:aws:eks:eu-west-1:000000000000:access-entry/Blue_1/role/000000000000/team/"+string(list.Items[0].UID))
	w.ask("GET", tags, "", 200, `{"tags":{"team":"a"}}`)
	w.ask("POST", tags, `{"tags":{"b":"2","team":"c"}}`, 200)
	w.ask("GET", one, "", 200, `"tags":{"b":"2","team":"c"}`)
	w.ask("DELETE", tags+"?tagKeys=b&tagKeys=team", "", 200)
	w.ask("GET", tags, "", 200, `{"tags":{}}`)
	w.ask("POST", tags, `{"tags":{"aws:x":"y"}}`, 400, "BadRequestException")
	w.ask("GET", tags+"0", "", 404, "NotFoundException")
	w.gate.Denies = true
	w.ask("POST", tags, `{"tags":{"b":"2"}}`, 403)
	w.ask("DELETE", one, "", 403)
	w.gate.Denies = false
	w.ask("DELETE", one, "", 200, "{}")
	w.ask("GET", one, "", 404, "The specified principalArn could not be found")
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreateAccessEntry arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:requesttag/team=a aws:resourcetag/team=a aws:tagkeys=team eks:kubernetesgroups=devs eks:principalarn=arn:aws:iam::000000000000:role/team",
		"aws:resourcetag/team=a eks:accessentrytype=STANDARD eks:accessscope=namespace eks:clustername=Blue_1 eks:namespaces=dev eks:policyarn=" + viewPolicy,
		"eks:DescribeAccessEntry arn:aws:eks:eu-west-1:000000000000:access-entry/Blue_1/role/000000000000/team/* eks:clustername=Blue_1",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
	w.ask("POST", "/clusters", strings.NewReplacer("Blue_1", "old", "t1", "t9", `"API"`, `"CONFIG_MAP"`).Replace(makeOne), 200)
	w.served("old")
	w.ask("GET", "/clusters/old/access-entries", "", 400, "InvalidRequestException", "authentication mode must be set to one of [API, API_AND_CONFIG_MAP]")
}

// A controller records the id of an entry's principal a moment after the entry is made. Terraform takes a conflict for
// the end.
func TestAccessEntriesThatOthersChangeToo(t *testing.T) {
	team := role("team", "ec2.amazonaws.com")
	team.Spec.RoleID = "AROA1"
	w := newWorld(t, nil, team)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	const path = "/clusters/Blue_1/access-entries"
	w.ask("POST", path, `{"principalArn":"arn:aws:iam::000000000000:role/team"}`, 200)
	others := 0
	under, ok := w.cluster.(client.WithWatch)
	if !ok {
		t.Fatalf("the fake is a %T", w.cluster)
	}
	w.cluster = interceptor.NewClient(under, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			var theirs accessv1alpha1.AccessEntry
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), &theirs); err != nil {
				return err
			}
			if others < 2 {
				others++
				theirs.Spec.Username = fmt.Sprintf("theirs-%d", others)
				if err := c.Update(ctx, &theirs); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	one := path + "/" + url.PathEscape("arn:aws:iam::000000000000:role/team")
	w.ask("POST", one+"/access-policies", `{"policyArn":"`+viewPolicy+`","accessScope":{"type":"cluster"}}`, 200)
	w.ask("GET", one, "", 200, `"username":"theirs-2"`)
	w.ask("GET", one+"/access-policies", "", 200, viewPolicy)
}
