// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// tagged are the resources that GetResources answers, each with its tags.
func (s *served) tagged(body string) map[string]map[string]string {
	s.t.Helper()
	status, text := s.send(s.t.Context(), s.admin, "tagging GetResources "+body)
	var answer struct {
		ResourceTagMappingList []struct {
			ResourceARN string
			Tags        []struct{ Key, Value string }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 {
		s.t.Fatalf("%d %s, %v", status, text, err)
	}
	all := map[string]map[string]string{}
	for _, m := range answer.ResourceTagMappingList {
		tags := map[string]string{}
		for _, tag := range m.Tags {
			tags[tag.Key] = tag.Value
		}
		all[m.ResourceARN] = tags
	}
	return all
}

// Whatever service made a resource, its tags find it.
func TestTaggedResourcesOfAllServices(t *testing.T) {
	var plane client.Client
	s := serve(t, func(c client.Client) client.Client { plane = c; return c })
	ids := map[string]string{}
	for _, request := range []string{
		"ec2 CreateVpc CidrBlock=10.9.0.0%2F16&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=of&TagSpecification.1.Tag.1.Value=all",
		"ec2 CreateSubnet CidrBlock=10.9.0.0%2F24&VpcId={vpc}&TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=of&TagSpecification.1.Tag.1.Value=all",
		"ec2 CreateSecurityGroup GroupName=a&GroupDescription=b&VpcId={vpc}&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=of&TagSpecification.1.Tag.1.Value=all",
		"ec2 CreateInternetGateway TagSpecification.1.ResourceType=internet-gateway&TagSpecification.1.Tag.1.Key=of&TagSpecification.1.Tag.1.Value=all",
		"ec2 CreateInternetGateway ",
		`kms CreateKey {"Tags":[{"TagKey":"of","TagValue":"all"}]}`,
		`logs CreateLogGroup {"logGroupName":"/a","tags":{"of":"all"}}`,
		`sqs CreateQueue {"QueueName":"a","tags":{"of":"all"}}`,
		`events PutRule {"Name":"a","EventPattern":"{\"source\":[\"aws.ec2\"]}","Tags":[{"Key":"of","Value":"all"}]}`,
	} {
		for name, id := range ids {
			request = strings.ReplaceAll(request, "{"+name+"}", id)
		}
		status, body := s.send(t.Context(), s.admin, request)
		if status != 200 {
			t.Fatalf("%s: %d %s", request, status, body)
		}
		for name, form := range map[string]string{"vpc": `vpc-[0-9a-f]{17}`, "subnet": `subnet-[0-9a-f]{17}`, "group": `sg-[0-9a-f]{17}`, "gateway": `igw-[0-9a-f]{17}`, "key": `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`} {
			if found := regexp.MustCompile(form).FindString(body); found != "" && ids[name] == "" && (name != "key" || strings.HasPrefix(request, "kms")) {
				ids[name] = found
			}
		}
	}
	of := v1alpha1.Tags{"of": "all"}
	in := func(name, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "blue", Name: name, UID: types.UID("uid-" + uid)}
	}
	group := &v1alpha1.SecurityGroup{}
	if err := plane.Get(t.Context(), client.ObjectKey{Name: ids["group"]}, group); err != nil {
		t.Fatal(err)
	}
	group.Spec.ClusterName = "blue"
	if err := plane.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&v1alpha1.Cluster{ObjectMeta: in("blue", "c"), Spec: v1alpha1.ClusterSpec{Name: "blue", Tags: of}},
		&v1alpha1.NodeGroup{ObjectMeta: in("web", "g"), Spec: v1alpha1.NodeGroupSpec{Name: "Web", Tags: of}},
		&v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "gone", Name: "web"}, Spec: v1alpha1.NodeGroupSpec{Name: "Web", Tags: of}},
		&v1alpha1.FargateProfile{ObjectMeta: in("f", "f"), Spec: v1alpha1.FargateProfileSpec{Name: "f", ClusterName: "blue", Tags: of}},
		&v1alpha1.Addon{ObjectMeta: in("coredns", "a"), Spec: v1alpha1.AddonSpec{Tags: of}},
		&v1alpha1.PodIdentityAssociation{ObjectMeta: in("a-1", "p"), Spec: v1alpha1.PodIdentityAssociationSpec{ClusterName: "blue", Tags: of}},
	} {
		if err := plane.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	want := []string{
		"ec2:us-east-1:000000000000:vpc/" + ids["vpc"], "ec2:us-east-1:000000000000:subnet/" + ids["subnet"], "ec2:us-east-1:000000000000:security-group/" + ids["group"],
		"ec2:us-east-1:000000000000:internet-gateway/" + ids["gateway"], "kms:us-east-1:000000000000:key/" + ids["key"], "logs:us-east-1:000000000000:log-group:/a",
		"sqs:us-east-1:000000000000:a", "events:us-east-1:000000000000:rule/a", "eks:us-east-1:000000000000:cluster/blue", "eks:us-east-1:000000000000:nodegroup/blue/Web/uid-g",
		"eks:us-east-1:000000000000:fargateprofile/blue/f/uid-f", "eks:us-east-1:000000000000:addon/blue/coredns/uid-a", "eks:us-east-1:000000000000:podidentityassociation/blue/a-1",
	}
	got := s.tagged(`{"TagFilters":[{"Key":"of","Values":["all"]}]}`)
	for _, name := range want {
		if tags := got["arn:aws:"+name]; tags["of"] != "all" {
			t.Errorf("%s has the tags %v", name, tags)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d resources are listed, want %d: %v", len(got), len(want), got)
	}
	// Cluster API's provider leaves the group of an EKS cluster alone by this tag.
	if tags := got["arn:aws:ec2:us-east-1:000000000000:security-group/"+ids["group"]]; tags["aws:eks:cluster-name"] != "blue" {
		t.Errorf("the cluster's group has the tags %v", tags)
	}
	if got := s.tagged(`{"TagFilters":[{"Key":"of"}],"ResourceTypeFilters":["eks:nodegroup","sqs"]}`); len(got) != 2 {
		t.Errorf("of two types: %v", got)
	}
}

// Policies name the API's actions by tag:, and nothing else lets anybody list.
func TestRightsToListTags(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct {
		policy string
		want   int
	}{
		"lists":    {`"tag:GetResources"`, 200},
		"services": {`["tagging:*","ec2:*","sqs:*"]`, 400},
		"keys":     {`["tag:GetTagKeys","tag:GetTagV*"]`, 400},
	} {
		who := s.user(name, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":`+c.policy+`,"Resource":"*"}]}`)
		if status, body := s.send(t.Context(), who, "tagging GetResources"); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.policy, status, body, c.want)
		}
	}
}
