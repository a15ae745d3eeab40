// SPDX-License-Identifier: Apache-2.0

package blueprint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/shellquote"
)

// An account is EKS's API over objects in memory.
type account struct {
	t     *testing.T
	api   client.Client
	front *awsfront.Front
}

func newAccount(t *testing.T) *account {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var objects []client.Object
	for name, service := range map[string]string{"eks": "eks.amazonaws.com", "nodes": "ec2.amazonaws.com", v1alpha1.ClusterNodeRole(v1alpha1.ClusterSlug("Blue_1")): "ec2.amazonaws.com"} {
		r := &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec.Account, r.Spec.Name, r.Spec.ARN, r.Spec.AttachedPolicies = awsfronttest.Account, name, "arn:aws:iam::"+awsfronttest.Account+":role/"+name, []string{"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}
		r.Spec.TrustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole"}]}`
		objects = append(objects, r)
	}
	for id, zone := range map[string]string{first: "eu-west-1a", second: "eu-west-1b"} {
		objects = append(objects, &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SubnetSpec{VPCID: "vpc-1", AvailabilityZone: zone}})
	}
	a := &account{t: t, front: awsfronttest.New(t, &awsfronttest.Gate{}, nil)}
	a.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Cluster{}).
		WithInterceptorFuncs(awsfronttest.Numbered(func(int) time.Time { return time.Unix(1800000000, 0) })).Build()
	if err := eks.Register(a.front, eks.Config{
		Account: awsresource.Account{Management: a.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}, LocalMachines: true,
		Unbuilt: func(release.Release) string { return "" }, Compute: func(v1alpha1.ClusterSpec, []v1alpha1.Addon) string { return "" },
		Cluster:  func(string) (client.Client, error) { return a.api, nil },
		Insights: func(context.Context, *v1alpha1.Cluster) []insight.Insight { return nil },
		CheckVersion: func(context.Context, *v1alpha1.Cluster, release.Release) (string, []insight.Insight, error) {
			return "", nil, nil
		},
		Key: func(context.Context, string, string) error { return nil }, KeyPair: func(context.Context, string) (bool, error) { return true, nil },
		Public:       func(context.Context, string, string) (string, string, error) { return "", "", nil },
		AccessPolicy: func(string) error { return nil }, AccessPolicies: []string{"AmazonEKSViewPolicy"},
	}); err != nil {
		t.Fatal(err)
	}
	return a
}

// made are the specs of what requests make, by kind and name.
func (a *account) made(requests []blueprint.Request) map[string]any {
	a.t.Helper()
	key := client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: v1alpha1.ClusterSlug("Blue_1")}
	exists := requests[0].Action != "CreateCluster"
	if exists {
		if err := a.api.Create(a.t.Context(), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1alpha1.ClusterSpec{Name: "Blue_1"}}); err != nil {
			a.t.Fatal(err)
		}
		a.serve(key)
	}
	for _, r := range requests {
		if _, err := a.front.Do(a.t.Context(), awsfront.Inside{Caller: awsfronttest.Caller{}, Service: "eks", Action: r.Action, Input: r.Input}); err != nil {
			a.t.Fatalf("%s %v: %v", r.Action, r.Input, err)
		}
		if r.Action == "CreateCluster" {
			a.serve(key)
		}
	}
	found := map[string]any{}
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	var addons v1alpha1.AddonList
	for _, list := range []client.ObjectList{&clusters, &groups, &addons} {
		if err := a.api.List(a.t.Context(), list); err != nil {
			a.t.Fatal(err)
		}
	}
	for i := range clusters.Items {
		if !exists {
			found["Cluster "+clusters.Items[i].Namespace] = clusters.Items[i].Spec
		}
	}
	for i := range groups.Items {
		found["NodeGroup "+groups.Items[i].Name] = groups.Items[i].Spec
	}
	for i := range addons.Items {
		addons.Items[i].Spec.Version = "" // that of the cluster's Kubernetes
		found["Addon "+addons.Items[i].Name] = addons.Items[i].Spec
	}
	return found
}

// serve has a cluster be ACTIVE.
func (a *account) serve(key client.ObjectKey) {
	a.t.Helper()
	var c v1alpha1.Cluster
	if err := a.api.Get(a.t.Context(), key, &c); err != nil {
		a.t.Fatal(err)
	}
	c.Finalizers = []string{v1alpha1.FinalizerCluster}
	if err := a.api.Update(a.t.Context(), &c); err != nil {
		a.t.Fatal(err)
	}
	c.Status.VPCID, c.Status.Version, c.Status.Endpoint, c.Status.CertificateAuthority.Data = "vpc-1", "v1.36.3", "https://127.0.0.1:6443", "UEVN"
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: metav1.Now()}}
	if err := a.api.Status().Update(a.t.Context(), &c); err != nil {
		a.t.Fatal(err)
	}
}

// ofManifest are the specs of a manifest.
func ofManifest(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for document := range strings.SplitSeq(text, "---\n") {
		var of metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatal(err)
		}
		switch of.Kind {
		case "Cluster":
			var c v1alpha1.Cluster
			strict(t, document, &c)
			found["Cluster "+c.Namespace] = c.Spec
		case "NodeGroup":
			var g v1alpha1.NodeGroup
			strict(t, document, &g)
			found["NodeGroup "+g.Name] = g.Spec
		case "Addon":
			var a v1alpha1.Addon
			strict(t, document, &a)
			found["Addon "+a.Name] = a.Spec
		case "Namespace":
		default:
			t.Fatalf("a document is of kind %q", of.Kind)
		}
	}
	return found
}

func strict(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
}

// ofCommands are the requests that AWS's CLI sends for commands: an option is a member of the input, a value of several words a list, a
// value in braces a structure or a map.
func ofCommands(t *testing.T, text string) []blueprint.Request {
	t.Helper()
	var requests []blueprint.Request
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		words, err := shellquote.Split(line)
		if err != nil || words[0] != "aws" || words[1] != "eks" {
			t.Fatalf("%q: %v", line, err)
		}
		if words[2] == "wait" {
			continue
		}
		r := blueprint.Request{Action: map[string]string{"create-cluster": "CreateCluster", "create-nodegroup": "CreateNodegroup", "create-addon": "CreateAddon"}[words[2]], Input: awsshape.Object{}}
		for rest := words[3:]; len(rest) > 0; {
			option, end := rest[0], 1
			for end < len(rest) && !strings.HasPrefix(rest[end], "--") {
				end++
			}
			name, value := ofOption(t, option, rest[1:end])
			r.Input[name], rest = value, rest[end:]
		}
		requests = append(requests, r)
	}
	return requests
}

func ofOption(t *testing.T, option string, values []string) (string, any) {
	t.Helper()
	name, no := strings.CutPrefix(option, "--no-")
	name = strings.TrimPrefix(name, "--")
	if name == "kubernetes-version" {
		name = "version"
	}
	parts := strings.Split(name, "-")
	for i := range parts[1:] {
		parts[i+1] = strings.ToUpper(parts[i+1][:1]) + parts[i+1][1:]
	}
	name = strings.Join(parts, "")
	switch {
	case len(values) == 0:
		return name, !no
	case name == "subnets" || name == "instanceTypes":
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		return name, list
	case strings.HasPrefix(values[0], "{"):
		return name, objectOf(t, values[0])
	case name == "diskSize":
		var n int64
		if _, err := fmt.Sscan(values[0], &n); err != nil {
			t.Fatal(err)
		}
		return name, n
	}
	return name, values[0]
}

// objectOf is JSON as an input has it.
func objectOf(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return plain(value)
}

func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		n, _ := value.Int64()
		return n
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
		return value
	case map[string]any:
		object := awsshape.Object{}
		for k, v := range value {
			object[k] = plain(v)
		}
		return object
	}
	return value
}

// clusterConfig is what is read here of eksctl's file: pkg/apis/eksctl.io/v1alpha5 has the names.
type clusterConfig struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Region, Version string }
	IAM              struct{ ServiceRoleARN string }
	AccessConfig     struct{ AuthenticationMode string }
	AddonsConfig     struct{ DisableDefaultAddons bool }
	VPC              struct {
		Subnets map[string]map[string]struct{ ID string }
	}
	CloudWatch struct {
		ClusterLogging struct{ EnableTypes []string }
	}
	Addons         []struct{ Name string }
	AutoModeConfig struct {
		Enabled     bool
		NodePools   []string
		NodeRoleARN string
	}
	ManagedNodeGroups []struct {
		Name                                          string
		InstanceTypes, Subnets                        []string
		MinSize, DesiredCapacity, MaxSize, VolumeSize int64
		Spot, PrivateNetworking                       bool
		IAM                                           struct{ InstanceRoleARN string }
		Labels                                        map[string]string
	}
}

// ofEksctl are the requests that eksctl's templates make of a file (pkg/cfn/builder/cluster.go and managed_nodegroup.go): its default
// add-ons are off, the API's own are always off, and a volume is that of the launch template, here of the group.
func ofEksctl(t *testing.T, text string, exists bool) []blueprint.Request {
	t.Helper()
	var c clusterConfig
	strict(t, text, &c)
	if c.APIVersion != "eksctl.io/v1alpha5" || c.Kind != "ClusterConfig" || c.Metadata.Region != "eu-west-1" || !exists && !c.AddonsConfig.DisableDefaultAddons {
		t.Fatalf("%+v", c)
	}
	list := func(texts []string) []any {
		all := []any{}
		for _, text := range texts {
			all = append(all, text)
		}
		return all
	}
	var requests []blueprint.Request
	if !exists {
		var subnets []string
		for _, kind := range []string{"public", "private"} {
			for _, one := range c.VPC.Subnets[kind] {
				subnets = append(subnets, one.ID)
			}
		}
		input := awsshape.Object{
			"name": c.Metadata.Name, "version": c.Metadata.Version, "roleArn": c.IAM.ServiceRoleARN, "bootstrapSelfManagedAddons": false,
			"accessConfig": awsshape.Object{"authenticationMode": c.AccessConfig.AuthenticationMode}, "resourcesVpcConfig": awsshape.Object{"subnetIds": list(subnets)},
		}
		if types := c.CloudWatch.ClusterLogging.EnableTypes; len(types) > 0 {
			input["logging"] = awsshape.Object{"clusterLogging": []any{awsshape.Object{"enabled": true, "types": list(types)}}}
		}
		if c.AutoModeConfig.Enabled {
			input["computeConfig"] = awsshape.Object{"enabled": true, "nodePools": list(c.AutoModeConfig.NodePools), "nodeRoleArn": c.AutoModeConfig.NodeRoleARN}
			input["storageConfig"] = awsshape.Object{"blockStorage": awsshape.Object{"enabled": true}}
			input["kubernetesNetworkConfig"] = awsshape.Object{"elasticLoadBalancing": awsshape.Object{"enabled": true}}
		}
		requests = append(requests, blueprint.Request{Action: "CreateCluster", Input: input})
	}
	for _, g := range c.ManagedNodeGroups {
		input := awsshape.Object{
			"clusterName": c.Metadata.Name, "nodegroupName": g.Name, "nodeRole": g.IAM.InstanceRoleARN, "subnets": list(g.Subnets), "instanceTypes": list(g.InstanceTypes), "diskSize": g.VolumeSize,
			"scalingConfig": awsshape.Object{"minSize": g.MinSize, "desiredSize": g.DesiredCapacity, "maxSize": g.MaxSize},
		}
		if g.Spot {
			input["capacityType"] = "SPOT"
		}
		if len(g.Labels) > 0 {
			labels := awsshape.Object{}
			for k, v := range g.Labels {
				labels[k] = v
			}
			input["labels"] = labels
		}
		requests = append(requests, blueprint.Request{Action: "CreateNodegroup", Input: input})
	}
	for _, a := range c.Addons {
		requests = append(requests, blueprint.Request{Action: "CreateAddon", Input: awsshape.Object{"clusterName": c.Metadata.Name, "addonName": a.Name}})
	}
	return requests
}

// The file for eksctl, the commands of AWS's CLI, what the console sends itself, and the manifest make the same objects.
func TestTextsDescribeTheSame(t *testing.T) {
	for name, b := range all() {
		t.Run(name, func(t *testing.T) {
			manifest, err := b.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			want := ofManifest(t, manifest)
			if n := len(b.Groups) + len(b.Addons); len(want) < max(n, 1) {
				t.Fatalf("the manifest has %d objects", len(want))
			}
			commands, err := b.Commands()
			if err != nil {
				t.Fatal(err)
			}
			file, err := b.Eksctl(place())
			if err != nil {
				t.Fatal(err)
			}
			for from, requests := range map[string][]blueprint.Request{"commands": ofCommands(t, commands), "eksctl": ofEksctl(t, file, b.Exists), "requests": b.Requests()} {
				if diff := cmp.Diff(want, newAccount(t).made(requests)); diff != "" {
					t.Errorf("%s (-manifest +%s):\n%s", from, from, diff)
				}
			}
		})
	}
}
