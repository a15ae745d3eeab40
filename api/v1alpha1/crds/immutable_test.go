// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
)

// machineField has two valid values of a field of MachineSpec.
type machineField struct {
	one, other string
	with       string // a field that the field needs beside it
	changeable bool
}

// machineFields has every field of MachineSpec by its JSON name.
var machineFields = map[string]machineField{
	"clusterName":      {one: "a", other: "b"},
	"nodeGroup":        {one: "a", other: "b", with: "clusterName"},
	"nodeGroupUID":     {one: "a", other: "b"},
	"provider":         {one: "local", other: "simulated"},
	"isolation":        {one: "none", other: "user-namespace"},
	"simulatePods":     {one: "true", other: "false"},
	"subnetID":         {one: "subnet-0123456789abcdef0", other: "subnet-0123456789abcdef1"},
	"labels":           {one: "{a: b}", other: "{a: c}"},
	"taints":           {one: "[{key: a, effect: NoSchedule}]", other: "[{key: a, effect: NoExecute}]"},
	"launchTemplate":   {one: "{instanceType: m5.large}", other: "{instanceType: m5.xlarge}"},
	"rollout":          {one: "a", other: "b"},
	"instanceProfile":  {one: "a", other: "b"},
	"instanceType":     {one: "m5.large", other: "m5.xlarge"},
	"diskSize":         {one: "20", other: "30"},
	"imageID":          {one: "ami-0123456789abcdef0", other: "ami-0123456789abcdef1"},
	"securityGroupIDs": {one: "[sg-0123456789abcdef0]", other: "[sg-0123456789abcdef1]", changeable: true},
	"keyName":          {one: "a", other: "b"},
	"userData":         {one: "AAAA", other: "AAAB"},
	"metadataOptions":  {one: "{httpPutResponseHopLimit: 1}", other: "{httpPutResponseHopLimit: 2}"},
	"marketType":       {one: "spot", other: "on-demand"},
	"fargate":          {one: "{profile: a, profileUID: b, podNamespace: a, podName: a, podUID: a, milliCPU: 250, memoryMiB: 512}", other: "{profile: a, profileUID: b, podNamespace: a, podName: a, podUID: b, milliCPU: 250, memoryMiB: 512}", with: "clusterName"},
	"reservation":      {one: "{id: r-0123456789abcdef0}", other: "{id: r-0123456789abcdef0, index: 1}"},
	"tags":             {one: "{a: b}", other: "{a: c}", changeable: true},

	"disableSourceCheck":    {one: "false", other: "true", changeable: true},
	"disableAPITermination": {one: "false", other: "true", changeable: true},
	"protectedFromScaleIn":  {one: "false", other: "true", changeable: true},
	"powerState":            {one: "Running", other: "Stopped", changeable: true},
	"drill":                 {one: "{kind: stop, began: \"2026-11-29T12:00:00.000000Z\", ends: \"2026-11-29T12:05:00Z\"}", other: "{kind: kubelet, began: \"2026-11-29T12:00:00.000000Z\", ends: \"2026-11-29T12:05:00Z\"}", changeable: true},
	"warmPool":              {one: "Running", other: "Stopped", changeable: true},
	"reboots":               {one: "1", other: "2", changeable: true},
	"scalingGroup":          {one: "{name: a, uid: b}", other: "{name: c, uid: d}", changeable: true},
}

// TestMachineFields changes, adds and removes each field of MachineSpec. Unless the field is changeable, the API server refuses each with a
// message that names the field.
func TestMachineFields(t *testing.T) {
	machines := servers(t)["Machine"]
	spec := reflect.TypeFor[v1alpha1.MachineSpec]()
	var names []string
	for field := range spec.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		f, listed := machineFields[name]
		if !listed {
			t.Errorf("field %q of MachineSpec is missing in machineFields", name)
			continue
		}
		updates := map[string][2]string{"keep": {f.one, f.one}, "change": {f.one, f.other}, "remove": {f.one, ""}}
		if options != "" {
			updates["add"] = [2]string{"", f.one} // a required field is in every stored object
		}
		for update, values := range updates {
			t.Run(name+"/"+update, func(t *testing.T) {
				old, changed := f.machine(t, name, values[0]), f.machine(t, name, values[1])
				if errs := machines.create(t, old); len(errs) > 0 {
					t.Fatalf("the old machine is invalid: %v", errs.ToAggregate())
				}
				if errs := machines.create(t, changed); len(errs) > 0 && options != "" {
					t.Fatalf("the changed machine is invalid: %v", errs.ToAggregate())
				}
				errs := machines.check(t, changed, old)
				if update != "keep" && !f.changeable {
					refused(t, errs, name)
				} else if len(errs) > 0 {
					t.Errorf("refused: %v", errs.ToAggregate())
				}
			})
		}
	}
	for name := range machineFields {
		if !slices.Contains(names, name) {
			t.Errorf("field %q of machineFields is missing in MachineSpec", name)
		}
	}
}

// refused fails the test unless the errors are about the field, and say that it cannot be changed or that it is required.
func refused(t *testing.T, errs field.ErrorList, name string) {
	t.Helper()
	if len(errs) == 0 {
		t.Error("accepted")
	}
	for _, err := range errs {
		if err.Field != "spec."+name || err.Type != field.ErrorTypeRequired && !strings.HasPrefix(err.Detail, name+" cannot be changed") {
			t.Errorf("got error %q, want one that says that %s cannot be changed", err, name)
		}
	}
}

// machine returns a machine with a value of the field, or without the field if the value is empty.
func (f machineField) machine(t *testing.T, name, value string) map[string]any {
	t.Helper()
	values := map[string]string{"provider": machineFields["provider"].one}
	if f.with != "" {
		values[f.with] = machineFields[f.with].one
	}
	values[name] = value
	var fields []string
	for name, value := range values {
		if value != "" {
			fields = append(fields, name+": "+value)
		}
	}
	return parse(t, "{apiVersion: muster.dev/v1alpha1, kind: Machine, metadata: {name: i-0123456789abcdef0}, spec: {"+strings.Join(fields, ", ")+"}}")
}

const (
	oldRole        = `{apiVersion: muster.dev/v1alpha1, kind: IAMRole, metadata: {name: "000000000000.a"}, spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:role/a", created: "2026-01-01T00:00:00Z", roleID: AROAAAAAAAAAAAAAAAAAA, trustPolicy: "{}", maxSessionSeconds: 3600}}`
	oldProfile     = `{apiVersion: muster.dev/v1alpha1, kind: IAMInstanceProfile, metadata: {name: "000000000000.a"}, spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:instance-profile/a", created: "2026-01-01T00:00:00Z", profileID: AIPAAAAAAAAAAAAAAAAAA}}`
	oldPolicy      = `{apiVersion: muster.dev/v1alpha1, kind: IAMPolicy, metadata: {name: "000000000000.a"}, spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:policy/a", created: "2026-01-01T00:00:00Z", updated: "2026-01-01T00:00:00Z", policyID: ANPAAAAAAAAAAAAAAAAAA, defaultVersion: v1, versions: [{id: v1, document: "{}", created: "2026-01-01T00:00:00Z"}]}}`
	oldIssuer      = `{apiVersion: muster.dev/v1alpha1, kind: IAMOpenIDConnectProvider, metadata: {name: "000000000000.a.b"}, spec: {account: "000000000000", url: a.b, arn: "arn:aws:iam::000000000000:oidc-provider/a.b", created: "2026-01-01T00:00:00Z"}}`
	oldPods        = `{apiVersion: muster.dev/v1alpha1, kind: FargateProfile, metadata: {name: a}, spec: {name: a, clusterName: a, podExecutionRoleARN: "arn:aws:iam::000000000000:role/a", selectors: [{namespace: a}]}}`
	oldPoint       = `{apiVersion: muster.dev/v1alpha1, kind: AccessPoint, metadata: {name: fsap-0123456789abcdef0}, spec: {fileSystemID: fs-0123456789abcdef0, path: /a, clusterName: a}}`
	oldSnapshot    = `{apiVersion: muster.dev/v1alpha1, kind: VolumeSnapshot, metadata: {name: fssnap-0123456789abcdef0}, spec: {fileSystemID: fs-0123456789abcdef0, sourceVolume: a, clusterName: a}}`
	oldSecurity    = `{apiVersion: muster.dev/v1alpha1, kind: SecurityGroup, metadata: {name: sg-0123456789abcdef0}, spec: {vpcID: vpc-0123456789abcdef0, groupName: a, description: a, clusterName: a}}`
	oldAssociation = `{apiVersion: muster.dev/v1alpha1, kind: PodIdentityAssociation, metadata: {name: a-0123456789abcdef0}, spec: {clusterName: a, namespace: a, serviceAccount: a, roleARN: "arn:aws:iam::000000000000:role/a"}}`
)

// TestFixedFields is TestMachineFields for kinds with few fields that cannot be changed. A row without a field
// is an update that the API server accepts.
func TestFixedFields(t *testing.T) {
	tests := []struct{ name, old, patch, field string }{
		{"IAM user: account", oldUser, `{metadata: {name: "111111111111.a"}, spec: {account: "111111111111", arn: "arn:aws:iam::111111111111:user/a"}}`, "account"},
		{"IAM user: id", oldUser, `{spec: {userID: AIDABAAAAAAAAAAAAAAAA}}`, "userID"},
		{"IAM user: name", oldUser, `{spec: {name: b, arn: "arn:aws:iam::000000000000:user/b"}}`, "name"},
		{"IAM user: capitals of the name", oldUser, `{spec: {name: A, arn: "arn:aws:iam::000000000000:user/A"}}`, ""},
		{"IAM user: path", oldUser, `{spec: {path: /b/, arn: "arn:aws:iam::000000000000:user/b/a"}}`, ""},
		{"IAM role: account", oldRole, `{metadata: {name: "111111111111.a"}, spec: {account: "111111111111", arn: "arn:aws:iam::111111111111:role/a"}}`, "account"},
		{"IAM role: id", oldRole, `{spec: {roleID: AROABAAAAAAAAAAAAAAAA}}`, "roleID"},
		{"IAM role: name", oldRole, `{spec: {name: A, arn: "arn:aws:iam::000000000000:role/A"}}`, "name"},
		{"IAM role: path", oldRole, `{spec: {path: /b/, arn: "arn:aws:iam::000000000000:role/b/a"}}`, "path"},
		{"IAM role: trust policy", oldRole, `{spec: {trustPolicy: "{ }"}}`, ""},
		{"instance profile: account", oldProfile, `{metadata: {name: "111111111111.a"}, spec: {account: "111111111111", arn: "arn:aws:iam::111111111111:instance-profile/a"}}`, "account"},
		{"instance profile: id", oldProfile, `{spec: {profileID: AIPABAAAAAAAAAAAAAAAA}}`, "profileID"},
		{"instance profile: name", oldProfile, `{spec: {name: A, arn: "arn:aws:iam::000000000000:instance-profile/A"}}`, "name"},
		{"instance profile: path", oldProfile, `{spec: {path: /b/, arn: "arn:aws:iam::000000000000:instance-profile/b/a"}}`, "path"},
		{"instance profile: role", oldProfile, `{spec: {roleID: AROAAAAAAAAAAAAAAAAAA, roleName: a}}`, ""},
		{"IAM policy: account", oldPolicy, `{metadata: {name: "111111111111.a"}, spec: {account: "111111111111", arn: "arn:aws:iam::111111111111:policy/a"}}`, "account"},
		{"IAM policy: id", oldPolicy, `{spec: {policyID: ANPABAAAAAAAAAAAAAAAA}}`, "policyID"},
		{"IAM policy: name", oldPolicy, `{spec: {name: A, arn: "arn:aws:iam::000000000000:policy/A"}}`, "name"},
		{"IAM policy: path", oldPolicy, `{spec: {path: /b/, arn: "arn:aws:iam::000000000000:policy/b/a"}}`, "path"},
		{"IAM policy: tags", oldPolicy, `{spec: {tags: [{key: a, value: b}]}}`, ""},
		{"OIDC provider: account", oldIssuer, `{metadata: {name: "111111111111.a.b"}, spec: {account: "111111111111", arn: "arn:aws:iam::111111111111:oidc-provider/a.b"}}`, "account"},
		{"OIDC provider: url", oldIssuer, `{spec: {url: b.b, arn: "arn:aws:iam::000000000000:oidc-provider/b.b"}}`, "url"},
		{"OIDC provider: audiences", oldIssuer, `{spec: {clientIDs: [a]}}`, ""},
		{"node group: name", hashed("NodeGroup", "A", ", scalingConfig: {desiredSize: 1}"), `{spec: {name: B}}`, "name"},
		{"node group: provider", oldGroup, `{spec: {provider: simulated}}`, "provider"},
		{"node group: the default provider", oldGroup, `{spec: {provider: local}}`, ""},
		{"VPC: range", oldVPC, `{spec: {cidrBlock: 172.30.0.0/16}}`, "cidrBlock"},
		{"VPC: default", oldVPC, `{spec: {isDefault: true}}`, "isDefault"},
		{"VPC: not the default", oldVPC, `{spec: {isDefault: false}}`, ""},
		{"subnet: VPC", oldSubnet, `{spec: {vpcID: vpc-0123456789abcdef1}}`, "vpcID"},
		{"subnet: range", oldSubnet, `{spec: {cidrBlock: 172.31.16.0/20}}`, "cidrBlock"},
		{"subnet: zone", oldSubnet, `{spec: {availabilityZone: us-east-1b}}`, "availabilityZone"},
		{"security group: VPC", oldSecurity, `{spec: {vpcID: vpc-0123456789abcdef1}}`, "vpcID"},
		{"security group: name", oldSecurity, `{spec: {groupName: b}}`, "groupName"},
		{"security group: description", oldSecurity, `{spec: {description: b}}`, "description"},
		{"security group: cluster", oldSecurity, `{spec: {clusterName: b}}`, "clusterName"},
		{"security group: no cluster", oldSecurity, `{spec: {clusterName: null}}`, "clusterName"},
		{"security group: tags", oldSecurity, `{spec: {tags: {a: b}}}`, ""},
		{"launch template: name", oldLaunch, `{spec: {name: other}}`, "name"},
		{"record: type", oldRecord, `{spec: {type: route-table}}`, "type"},
		{"record: name", oldRecord, `{spec: {name: b}}`, "name"},
		{"record: no name", oldRecord, `{spec: {name: null}}`, "name"},
		{"association: cluster", oldAssociation, `{spec: {clusterName: b}}`, "clusterName"},
		{"association: namespace", oldAssociation, `{spec: {namespace: b}}`, "namespace"},
		{"association: service account", oldAssociation, `{spec: {serviceAccount: b}}`, "serviceAccount"},
		{"association: role", oldAssociation, `{spec: {roleARN: "arn:aws:iam::000000000000:role/b"}}`, ""},
		{"Fargate profile: cluster", oldPods, `{spec: {clusterName: b}}`, "clusterName"},
		{"Fargate profile: role", oldPods, `{spec: {podExecutionRoleARN: "arn:aws:iam::000000000000:role/b"}}`, "podExecutionRoleARN"},
		{"Fargate profile: selectors", oldPods, `{spec: {selectors: [{namespace: b}]}}`, "selectors"},
		{"Fargate profile: subnets", oldPods, `{spec: {subnetIDs: [subnet-0123456789abcdef0]}}`, "subnetIDs"},
		{"Fargate profile: tags", oldPods, `{spec: {tags: {a: b}}}`, ""},
		{"access point: file system", oldPoint, `{spec: {fileSystemID: fs-0123456789abcdef1}}`, "fileSystemID"},
		{"access point: path", oldPoint, `{spec: {path: /b}}`, "path"},
		{"access point: cluster", oldPoint, `{spec: {clusterName: b}}`, "clusterName"},
		{"access point: no cluster", oldPoint, `{spec: {clusterName: null}}`, "clusterName"},
		{"access point: block", oldPoint, `{spec: {block: true}}`, "block"},
		{"access point: not block", oldPoint, `{spec: {block: false}}`, ""},
		{"access point: size", oldPoint, `{spec: {capacityBytes: 1, tags: {a: b}}}`, ""},
		{"snapshot: file system", oldSnapshot, `{spec: {fileSystemID: fs-0123456789abcdef1}}`, "fileSystemID"},
		{"snapshot: volume", oldSnapshot, `{spec: {sourceVolume: b}}`, "sourceVolume"},
		{"snapshot: cluster", oldSnapshot, `{spec: {clusterName: b}}`, "clusterName"},
		{"snapshot: block", oldSnapshot, `{spec: {block: true}}`, "block"},
		{"snapshot: size", oldSnapshot, `{spec: {capacityBytes: 1}}`, "capacityBytes"},
		{"snapshot: the defaults", oldSnapshot, `{spec: {block: false, capacityBytes: 0, deleteWithCluster: true}}`, ""},
	}
	api := servers(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, changed := parse(t, test.old), parse(t, test.old)
			kind, _ := old["kind"].(string)
			merge(changed, parse(t, test.patch))
			for _, object := range []map[string]any{old, changed} {
				if errs := api[kind].create(t, object); len(errs) > 0 {
					t.Fatalf("the object is invalid: %v", errs.ToAggregate())
				}
			}
			errs := api[kind].check(t, changed, old)
			if test.field != "" {
				refused(t, errs, test.field)
			} else if len(errs) > 0 {
				t.Errorf("refused: %v", errs.ToAggregate())
			}
		})
	}
}

// merge applies a JSON merge patch.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}
