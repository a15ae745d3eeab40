// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	oldCluster = `{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {name: a}}`
	oldGroup   = `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: a}, spec: {name: a, scalingConfig: {desiredSize: 1}}}`
	oldUser    = `{apiVersion: muster.dev/v1alpha1, kind: IAMUser, metadata: {name: "000000000000.a"}, spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:user/a", created: "2026-01-01T00:00:00Z", userID: AIDAAAAAAAAAAAAAAAAAA}}`
	oldVPC     = `{apiVersion: muster.dev/v1alpha1, kind: VPC, metadata: {name: vpc-0123456789abcdef0}, spec: {cidrBlock: 172.31.0.0/16}}`
	oldSubnet  = `{apiVersion: muster.dev/v1alpha1, kind: Subnet, metadata: {name: subnet-0123456789abcdef0}, spec: {vpcID: vpc-0123456789abcdef0, cidrBlock: 172.31.0.0/20, availabilityZone: us-east-1a}}`
	oldLaunch  = `{apiVersion: muster.dev/v1alpha1, kind: LaunchTemplate, metadata: {name: lt-0123456789abcdef0}, spec: {name: web, defaultVersion: 1, latestVersion: 2, versions: [{number: 1, data: {}}]}}`
	oldUpdate  = `{apiVersion: muster.dev/v1alpha1, kind: Update, metadata: {name: a}, spec: {clusterName: a, type: DeletionProtectionUpdate, change: {deletionProtection: true}}}`
	oldAddon   = `{apiVersion: muster.dev/v1alpha1, kind: Addon, metadata: {name: coredns}, spec: {addonName: coredns}}`
	oldRecord  = `{apiVersion: muster.dev/v1alpha1, kind: AWSRecord, metadata: {name: igw-0123456789abcdef0}, spec: {type: internet-gateway, name: a, data: {}}}`
	oldMachine = `{apiVersion: muster.dev/v1alpha1, kind: Machine, metadata: {name: i-0123456789abcdef0}, spec: {clusterName: muster, nodeGroup: workers, provider: local}}`
)

const oldInstance = `{apiVersion: muster.dev/v1alpha1, kind: Machine, metadata: {name: i-0123456789abcdef0}, spec: {provider: local, securityGroupIDs: [sg-0123456789abcdef0], tags: {Name: a}}}`

func instance(with string) string { return `{spec: {provider: local, ` + with + `}}` }

func access(mode string) string {
	return `{spec: {name: a, accessConfig: {authenticationMode: ` + mode + `}}}`
}

func mode(mode string) string {
	return `{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {name: a, accessConfig: {authenticationMode: ` + mode + `}}}`
}

// hashed is an object whose metadata.name the API server can hold against the form of a slug, and not against its hash.
func hashed(kind, name, rest string) string {
	return `{apiVersion: muster.dev/v1alpha1, kind: ` + kind + `, metadata: {name: a--0123456789}, spec: {name: ` + name + rest + `}}`
}

func TestUpdates(t *testing.T) {
	tests := []struct {
		name, old, patch string
		want             []string
	}{
		{"cluster: nothing", oldCluster, `{}`, nil},
		{"cluster: another port", oldCluster, `{spec: {name: a, apiServer: {port: 1}}}`, nil},
		{"cluster: another network", oldCluster, `{spec: {name: a, network: {podCIDR: 10.0.0.0/16}}}`, []string{"spec.network"}},
		{"cluster: other subnets", oldCluster, `{spec: {name: a, network: {subnetIDs: [subnet-0123456789abcdef0]}}}`, []string{"spec.network"}},
		{"cluster: subnets for pods", oldCluster, `{spec: {name: a, network: {podSubnetIDs: [subnet-0123456789abcdef0]}}}`, []string{"spec.network"}},
		{"cluster: access entries first", mode("CONFIG_MAP"), access("API_AND_CONFIG_MAP"), nil},
		{"cluster: access entries alone", mode("API_AND_CONFIG_MAP"), access("API"), nil},
		{"cluster: access entries alone, at once", mode("CONFIG_MAP"), access("API"), nil},
		{"cluster: the same mode", mode("API"), access("API"), nil},
		{"cluster: back to both", mode("API"), access("API_AND_CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to aws-auth", mode("API_AND_CONFIG_MAP"), access("CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to aws-auth by leaving the default", oldCluster, access("CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to the default by leaving it out", mode("API"), `{spec: {name: a}}`, []string{"spec.accessConfig.authenticationMode"}},
		{"node group: another size", oldGroup, `{spec: {name: a, scalingConfig: {desiredSize: 2}}}`, nil},
		{"cluster: another name", hashed("Cluster", "A", ""), `{spec: {name: B}}`, []string{"spec.name"}},
		{"add-on: another configuration", oldAddon, `{spec: {addonName: coredns, configurationValues: "{}", resolveConflicts: OVERWRITE}}`, nil},
		{"VPC: nothing", oldVPC, `{}`, nil},
		{"VPC: a way out", oldVPC, `{spec: {cidrBlock: 172.31.0.0/16, egress: {mode: NAT, allowedRanges: [10.20.0.0/16, 10.0.0.0/8], deniedRanges: [0.0.0.0/0]}}}`, nil},
		{"launch template: a version", oldLaunch, `{spec: {name: web, defaultVersion: 3, latestVersion: 3, versions: [{number: 3, data: {}}]}}`, nil},
		{"launch template: a number again", oldLaunch, `{spec: {name: web, defaultVersion: 1, latestVersion: 1, versions: [{number: 1, data: {}}]}}`, []string{"spec"}},
		{"VPC: tags and a record", oldVPC, `{spec: {cidrBlock: 172.31.0.0/16, tags: {team: a}, enableDnsHostnames: true}}`, nil},
		{"subnet: tags and a record", oldSubnet, `{spec: {vpcID: vpc-0123456789abcdef0, cidrBlock: 172.31.0.0/20, availabilityZone: us-east-1a, tags: {team: a}, mapPublicIpOnLaunch: true}}`, nil},
		{"record: tags and data", oldRecord, `{spec: {type: internet-gateway, name: a, tags: {team: a}, data: {vpcID: b}}}`, nil},
		{"update: nothing", oldUpdate, `{}`, nil},
		{"update: another change", oldUpdate, `{spec: {clusterName: a, type: DeletionProtectionUpdate, change: {deletionProtection: false}}}`, []string{"spec"}},
		{"machine: status", oldMachine, `{status: {phase: Joining}}`, nil},
		{"machine: another group", oldMachine, `{spec: {clusterName: muster, nodeGroup: other, provider: local}}`, []string{"spec.nodeGroup"}},
		{"machine: a group of the same name", oldMachine, `{spec: {clusterName: muster, nodeGroup: workers, nodeGroupUID: other, provider: local}}`, []string{"spec.nodeGroupUID"}},
		{"machine: a label", oldMachine, `{spec: {clusterName: muster, nodeGroup: workers, provider: local, labels: {a: b}}}`, []string{"spec.labels"}},
		{"instance: nothing", oldInstance, `{}`, nil},
		{"instance: what can be changed", oldInstance, instance("disableSourceCheck: true, disableAPITermination: true, protectedFromScaleIn: true, powerState: Stopped, reboots: 1, securityGroupIDs: [sg-0123456789abcdef1], tags: {Name: b}"), nil},
		{"instance: a cluster", oldInstance, instance("clusterName: a"), []string{"spec.clusterName"}},
		{"instance: a type", oldInstance, instance("instanceType: m5.large"), []string{"spec.instanceType"}},
		{"instance: an image", oldInstance, instance("imageID: ami-0123456789abcdef0"), []string{"spec.imageID"}},
		{"instance: a key", oldInstance, instance("keyName: a"), []string{"spec.keyName"}},
		{"instance: user data", oldInstance, instance("userData: AAAA"), []string{"spec.userData"}},
		{"instance: metadata", oldInstance, instance("metadataOptions: {httpPutResponseHopLimit: 2}"), []string{"spec.metadataOptions"}},
		{"instance: a reservation", oldInstance, instance("reservation: {id: r-0123456789abcdef0}"), []string{"spec.reservation"}},
		{"instance: a role", oldInstance, instance("instanceProfile: a"), []string{"spec.instanceProfile"}},
		{"instance: a subnet", oldInstance, instance("subnetID: subnet-0123456789abcdef0"), []string{"spec.subnetID"}},
	}
	api := servers(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, patch := parse(t, test.old), parse(t, test.patch)
			kind, _ := old["kind"].(string)
			if errs := api[kind].create(t, old); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			changed := runtime.DeepCopyJSON(old)
			maps.Copy(changed, patch)
			if errs := api[kind].create(t, changed); len(errs) > 0 {
				t.Fatalf("the object is wrong by itself: %v", errs.ToAggregate())
			}
			if got := paths(api[kind].check(t, changed, old)); !slices.Equal(got, test.want) {
				t.Errorf("wrong: %q, want %q", got, test.want)
			}
		})
	}
}
