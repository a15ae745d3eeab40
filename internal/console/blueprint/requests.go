// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"fmt"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/clienttoken"
)

// Request is a request of EKS's API.
type Request struct {
	Action string
	Input  awsshape.Object
}

// Requests are the requests of EKS's API that make a blueprint without problems, in their order. EKS takes those behind the first of a new
// cluster when the cluster is ACTIVE.
func (b Blueprint) Requests() []Request {
	var all []Request
	if !b.Exists {
		all = append(all, Request{"CreateCluster", b.clusterInput()})
	}
	for i, g := range b.Groups {
		all = append(all, Request{"CreateNodegroup", b.groupInput(g, i)})
	}
	if b.Exists {
		return all
	}
	for i, name := range b.sortedAddons() {
		all = append(all, Request{"CreateAddon", b.withToken(awsshape.Object{"clusterName": b.Name, "addonName": name}, len(b.Groups)+1+i)})
	}
	return all
}

// withToken adds the client token of the n-th request: each is another one, and that of a repetition is the same.
func (b Blueprint) withToken(input awsshape.Object, n int) awsshape.Object {
	if b.Token != "" {
		input["clientRequestToken"] = (clienttoken.Key{Account: accountID, Service: "console", Action: fmt.Sprint(n), Token: b.Token}).Label()
	}
	return input
}

func (b Blueprint) clusterInput() awsshape.Object {
	input := awsshape.Object{
		"name": b.Name, "version": b.Version, "roleArn": b.RoleARN, "resourcesVpcConfig": awsshape.Object{"subnetIds": listOf(b.SubnetIDs)},
		"accessConfig": awsshape.Object{"authenticationMode": "API_AND_CONFIG_MAP"}, "bootstrapSelfManagedAddons": false,
	}
	if len(b.LoggingTypes) > 0 {
		input["logging"] = awsshape.Object{"clusterLogging": []any{awsshape.Object{"types": listOf(b.LoggingTypes), "enabled": true}}}
	}
	if b.AutoMode {
		input["computeConfig"] = awsshape.Object{"enabled": true, "nodePools": []any{"general-purpose", "system"}, "nodeRoleArn": b.AutoNodeRole}
		input["storageConfig"] = awsshape.Object{"blockStorage": awsshape.Object{"enabled": true}}
		input["kubernetesNetworkConfig"] = awsshape.Object{"elasticLoadBalancing": awsshape.Object{"enabled": true}}
	}
	return b.withToken(input, 0)
}

func (b Blueprint) groupInput(g Group, i int) awsshape.Object {
	input := awsshape.Object{
		"clusterName": b.Name, "nodegroupName": g.Name, "nodeRole": b.NodeRole(g), "subnets": listOf(b.SubnetIDs), "instanceTypes": listOf(g.InstanceTypes),
		"scalingConfig": awsshape.Object{"minSize": int64(g.MinSize), "desiredSize": int64(g.DesiredSize), "maxSize": int64(g.MaxSize)},
		"diskSize":      int64(g.DiskSize), "capacityType": g.capacity(),
	}
	if len(g.Labels) > 0 {
		labels := awsshape.Object{}
		for key, value := range g.Labels {
			labels[key] = value
		}
		input["labels"] = labels
	}
	return b.withToken(input, i+1)
}

func listOf(texts []string) []any {
	all := []any{}
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}
