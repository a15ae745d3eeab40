// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/platform/statedir"
)

const eksRole = "arn:aws:iam::000000000000:role/eks"

// accountObjects are a VPC with subnets in two zones and another one there, and roles.
func accountObjects() []client.Object {
	var all []client.Object
	for id, at := range map[string][2]string{"subnet-00000000000000001": {"vpc-1", "a"}, "subnet-00000000000000002": {"vpc-1", "b"}, "subnet-00000000000000003": {"vpc-1", "b"}} {
		all = append(all, &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SubnetSpec{VPCID: at[0], AvailabilityZone: at[1]}})
	}
	all = append(all, &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: "vpc-1"}, Spec: v1alpha1.VPCSpec{IsDefault: true}})
	for name, service := range map[string]string{"eks": "eks.amazonaws.com", "nodes": "ec2.amazonaws.com"} {
		r := &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec.Account, r.Spec.Name, r.Spec.ARN, r.Spec.AttachedPolicies = "000000000000", name, "arn:aws:iam::000000000000:role/"+name, []string{"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}
		r.Spec.TrustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole"}]}`
		all = append(all, r)
	}
	return all
}

func wantedCluster() blueprint.Blueprint {
	return blueprint.Blueprint{
		Token:   "once",
		Cluster: blueprint.Cluster{Name: "blue", Version: "1.36", RoleARN: eksRole, SubnetIDs: []string{"subnet-00000000000000001", "subnet-00000000000000002"}, Addons: []string{"coredns"}},
		Groups:  []blueprint.Group{{Name: "web", InstanceTypes: []string{"t3.small"}, DesiredSize: 1, MaxSize: 2, DiskSize: 20}},
	}
}

// creator is a source over an account in which a cluster can be made.
func creator(t *testing.T) (*source, *clitest.Bench) {
	t.Helper()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), accountObjects()...)...)
	dir := t.TempDir()
	return &source{Options: b.O, planes: b.Planes, dir: statedir.Dir(b.O.StateDir), now: noon, binDir: func() (string, error) { return dir, nil }}, b
}

func TestCreate(t *testing.T) {
	s, _ := creator(t)
	made, err := s.Create(t.Context(), nil, wantedCluster())
	if err != nil {
		t.Fatal(err)
	}
	did := map[string]string{}
	for _, o := range made.Objects {
		did[o.Kind+" "+o.Name] = o.Did
	}
	if len(did) != 3 || did["cluster blue"] != "created" || did["nodegroup web"] != "created" || did["addon coredns"] != "created" {
		t.Errorf("%v", did)
	}
	if made, err = s.Create(t.Context(), nil, wantedCluster()); err != nil || made.Objects[0].Did != "unchanged" || made.Objects[1].Did != "unchanged" || made.Objects[2].Did != "unchanged" {
		t.Errorf("the same again: %+v, %v", made, err)
	}
	other := wantedCluster()
	other.Groups[0].MaxSize = 3
	var refused *pageserver.RefusedError
	if _, err := s.Create(t.Context(), nil, other); !errors.As(err, &refused) || !strings.Contains(err.Error(), "exists") {
		t.Errorf("another one of the name: %v", err)
	}
}

// All that an installation has against a plan is said at once, and nothing is made.
func TestCreateRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*source, *blueprint.Blueprint)
		fields map[string]string
	}{
		"roles and zones": {func(_ *source, b *blueprint.Blueprint) {
			b.RoleARN, b.Groups[0].NodeRole, b.SubnetIDs = "arn:aws:iam::000000000000:role/nodes", "arn:aws:iam::000000000000:role/gone", []string{"subnet-00000000000000002", "subnet-00000000000000003"}
		}, map[string]string{"roleArn": "trust", "nodeGroups[0].nodeRole": "no IAM role", "subnetIds": "one availability zone"}},
		"a subnet":      {func(_ *source, b *blueprint.Blueprint) { b.SubnetIDs[1] = "subnet-00000000000000009" }, map[string]string{"subnetIds": "does not exist"}},
		"a version":     {func(_ *source, b *blueprint.Blueprint) { b.Version = "1.35" }, map[string]string{"version": "1.35"}},
		"without root":  {func(s *source, _ *blueprint.Blueprint) { s.euid = 1000 }, map[string]string{"": "need root"}},
		"of no cluster": {func(_ *source, b *blueprint.Blueprint) { b.Exists, b.Name = true, "none" }, map[string]string{"clusterName": "not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := creator(t)
			plan := wantedCluster()
			test.change(s, &plan)
			made, err := s.Create(t.Context(), nil, plan)
			refused, ok := errors.AsType[*pageserver.RefusedError](err)
			if !ok || refused.Code != http.StatusBadRequest || len(made.Objects) > 0 {
				t.Fatalf("%+v, %v", made, err)
			}
			for _, p := range refused.Problems {
				if part := test.fields[p.Field]; part == "" || !strings.Contains(p.Message, part) {
					t.Errorf("%q: %s", p.Field, p.Message)
				}
				delete(test.fields, p.Field)
			}
			if len(test.fields) > 0 {
				t.Errorf("it does not say %v", test.fields)
			}
			p, err := b.Planes.Management(b.O)
			if err != nil {
				t.Fatal(err)
			}
			var all v1alpha1.ClusterList
			if err := p.ReadAll(t.Context(), &all); err != nil || len(all.Items) != 1 {
				t.Errorf("there are %d clusters, %v", len(all.Items), err)
			}
		})
	}
}

func TestChoices(t *testing.T) {
	s, _ := creator(t)
	var f view.Facts
	if err := s.choices(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
	if f.DefaultVPC != "vpc-1" || len(f.Roles) != 2 || f.Roles[0] != (view.Role{ARN: eksRole, Service: "eks"}) || f.Roles[1].Service != "ec2" {
		t.Errorf("%+v", f)
	}
}
