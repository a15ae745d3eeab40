// SPDX-License-Identifier: Apache-2.0

package blueprint_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/console/blueprint"
)

var update = flag.Bool("update", false, "rewrite golden files")

const (
	first  = "subnet-00000000000000001"
	second = "subnet-00000000000000002"
)

// wanted is a cluster with most of what can be chosen.
func wanted() blueprint.Blueprint {
	return blueprint.Blueprint{
		Token: "once",
		Cluster: blueprint.Cluster{
			Name: "Blue_1", Version: "1.36", RoleARN: "arn:aws:iam::000000000000:role/eks", SubnetIDs: []string{first, second},
			LoggingTypes: []string{"api", "audit"}, Addons: []string{"vpc-cni", "coredns", "kube-proxy"},
		},
		Groups: []blueprint.Group{
			{Name: "web", InstanceTypes: []string{"t3.small", "t3.medium"}, MinSize: 1, DesiredSize: 2, MaxSize: 4, DiskSize: 30, Labels: map[string]string{"tier": "web", "a.example/b": ""}},
			{Name: "team", InstanceTypes: []string{"t3.medium"}, MaxSize: 2, DiskSize: 20, CapacityType: "ON_DEMAND", NodeRole: "arn:aws:iam::000000000000:role/nodes"},
		},
	}
}

// auto is one whose control plane launches machines.
func auto() blueprint.Blueprint {
	b := wanted()
	b.AutoMode, b.AutoNodeRole, b.Groups, b.Addons, b.LoggingTypes = true, "arn:aws:iam::000000000000:role/nodes", nil, nil, nil
	return b
}

// further is a node group for a cluster that exists.
func further() blueprint.Blueprint {
	b := wanted()
	b.Exists, b.Cluster, b.Groups = true, blueprint.Cluster{Name: "Blue_1", SubnetIDs: []string{second}}, b.Groups[:1]
	return b
}

func all() map[string]blueprint.Blueprint {
	return map[string]blueprint.Blueprint{"cluster": wanted(), "auto": auto(), "group": further()}
}

// place is one with a private subnet.
func place() blueprint.Place {
	return blueprint.Place{Region: "eu-west-1", Private: map[string]bool{second: true}}
}

func TestTexts(t *testing.T) {
	for name, b := range all() {
		if problems := b.Problems(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		for file, render := range map[string]func() (string, error){
			"eksctl.yaml": func() (string, error) { return b.Eksctl(place()) }, "aws.sh": b.Commands, "manifest.yaml": b.Manifest,
		} {
			got, err := render()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+"."+file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, diff)
			}
		}
	}
}

// All that is wrong is said at once, each with its field.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*blueprint.Blueprint)
		want   map[string]string // a part of the message by its field
	}{
		"nothing": {func(*blueprint.Blueprint) {}, map[string]string{}},
		"a cluster": {
			func(b *blueprint.Blueprint) {
				b.Token = "a blank"
				b.Cluster = blueprint.Cluster{Name: "-", Version: "1.1", RoleARN: "eks", SubnetIDs: []string{"x"}, LoggingTypes: []string{"pods"}, Addons: []string{"coredns", "nginx", "coredns"}, AutoNodeRole: "r"}
			},
			map[string]string{
				"clientRequestToken": "visible ASCII", "name": "invalid cluster name", "version": "1.1", "roleArn": "invalid role", "subnetIds": "2 subnets", "loggingTypes[0]": "pods",
				"addons[1]": "unknown add-on", "addons[2]": "twice", "autoNodeRole": "leave it out",
			},
		},
		"subnets":   {func(b *blueprint.Blueprint) { b.SubnetIDs = []string{first, first, "subnet-1"} }, map[string]string{"subnetIds[1]": "Duplicate", "subnetIds[2]": "17 hexadecimal"}},
		"auto mode": {func(b *blueprint.Blueprint) { b.AutoMode, b.Addons = true, []string{"karpenter"} }, map[string]string{"autoNodeRole": "must be the ARN", "addons[0]": "Karpenter"}},
		"groups": {
			func(b *blueprint.Blueprint) {
				b.Groups[0] = blueprint.Group{Name: "a b", InstanceTypes: []string{"t3.small", "x9.huge"}, MinSize: -1, DesiredSize: 3, MaxSize: 0, CapacityType: "SPOT", Labels: map[string]string{"eks.amazonaws.com/x": "", "a": "b c"}}
				b.Groups[1] = blueprint.Group{Name: "web", MinSize: 2, DesiredSize: 1, MaxSize: 4, DiskSize: 20, NodeRole: "nodes"}
				b.Groups = append(b.Groups, blueprint.Group{Name: "web", InstanceTypes: []string{"t3.small"}, MaxSize: 4, DiskSize: 20})
			},
			map[string]string{
				"nodeGroups[0].name": "invalid node group name", "nodeGroups[0].instanceTypes[1]": "x9.huge", "nodeGroups[0].minSize": "-1", "nodeGroups[0].maxSize": "1 or more",
				"nodeGroups[0].diskSize": "GiB", "nodeGroups[0].capacityType": "SPOT", "nodeGroups[0].labels": "EKS's own",
				"nodeGroups[1].instanceTypes": "name an instance type", "nodeGroups[1].desiredSize": "must be from minSize", "nodeGroups[1].nodeRole": "invalid role", "nodeGroups[2].name": "twice",
			},
		},
		"too many": {func(b *blueprint.Blueprint) {
			for len(b.Groups) < 9 {
				b.Groups = append(b.Groups, b.Groups[0])
				b.Groups[len(b.Groups)-1].Name = strings.Repeat("g", len(b.Groups))
			}
		}, map[string]string{"nodeGroups": "at most 8"}},
		"a group of a cluster": {func(b *blueprint.Blueprint) { *b = further(); b.Name, b.SubnetIDs, b.Groups[0].DiskSize = "", nil, 0 }, map[string]string{"clusterName": "invalid", "subnetIds": "a subnet", "diskSize": "GiB"}},
		"no group":             {func(b *blueprint.Blueprint) { *b = further(); b.Groups = nil }, map[string]string{"nodeGroups": "no node group"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := wanted()
			test.change(&b)
			got := map[string]string{}
			for _, p := range b.Problems() {
				if _, twice := got[p.Field]; twice {
					t.Errorf("%s is there twice: %s", p.Field, p.Message)
				}
				got[p.Field] = p.Message
			}
			for field, part := range test.want {
				if !strings.Contains(got[field], part) {
					t.Errorf("%s: %q, want %q", field, got[field], part)
				}
				delete(got, field)
			}
			if len(got) > 0 {
				t.Errorf("besides: %q", got)
			}
		})
	}
}

func TestParse(t *testing.T) {
	body, err := json.Marshal(map[string]any{"clientRequestToken": "t", "name": "blue", "nodeGroups": []any{map[string]any{"name": "web", "minSize": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := blueprint.ParseCluster(body)
	if err != nil || b.Token != "t" || b.Name != "blue" || len(b.Groups) != 1 || b.Groups[0].MinSize != 1 || b.Exists {
		t.Errorf("%+v, %v", b, err)
	}
	b, err = blueprint.ParseGroup([]byte(`{"clusterName":"blue","subnetIds":["s"],"name":"web","labels":{"a":"b"}}`))
	if err != nil || !b.Exists || b.Name != "blue" || b.Groups[0].Name != "web" || b.Groups[0].Labels["a"] != "b" {
		t.Errorf("%+v, %v", b, err)
	}
	for _, text := range []string{``, `[]`, `{"nam":"x"}`, `{"name":1}`, `{} {}`, `{"nodeGroups":[{"size":1}]}`, `{"nodeGroups":[{"minSize":4294967296}]}`} {
		if _, err := blueprint.ParseCluster([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// FuzzParse asks of every body that it does no harm, and that what has no problems can be rendered.
func FuzzParse(f *testing.F) {
	for _, b := range all() {
		raw, err := json.Marshal(map[string]any{"clientRequestToken": b.Token, "name": b.Name, "version": b.Version, "roleArn": b.RoleARN, "subnetIds": b.SubnetIDs, "nodeGroups": b.Groups})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := blueprint.ParseCluster(body)
		if err != nil || len(b.Problems()) > 0 {
			return
		}
		for _, render := range []func() (string, error){func() (string, error) { return b.Eksctl(place()) }, b.Commands, b.Manifest} {
			if _, err := render(); err != nil {
				t.Errorf("%s: %v", body, err)
			}
		}
	})
}
