// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/aws/clienttoken"
	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/platform/release"
)

// accountID is the id of the one account that a state directory has.
const accountID = "000000000000"

// leastSubnets is how many subnets a cluster needs, in two zones.
const leastSubnets = 2

var rolePattern = regexp.MustCompile(`^arn:aws:iam::[0-9]{12}:role/([!-~]+/)?[A-Za-z0-9_+=,.@-]{1,64}$`)

var namePattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`)

// isName reports whether a text can be a name in EKS.
func isName(text string, most int) bool { return namePattern.MatchString(text) && len(text) <= most }

// Problem is what is wrong with one field.
type Problem struct {
	// Field is the path of the field in the body of a request, such as nodeGroups[0].minSize; empty for the whole.
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Problems are all that is wrong with a blueprint as far as it can be said without looking at the account, in the order of the fields. The
// rules are those of EKS's API and of Muster's own kinds.
func (b Blueprint) Problems() []Problem {
	var all problems
	if err := (clienttoken.Key{Account: accountID, Service: "eks", Action: "CreateCluster", Token: b.Token}).Check(); err != nil {
		all.add("clientRequestToken", "%v", err)
	}
	if b.Exists {
		all.existing(b)
	} else {
		all.cluster(b)
	}
	if len(b.Groups) > MostGroups {
		all.add("nodeGroups", "there are %d node groups: at most %d can be made at once", len(b.Groups), MostGroups)
	}
	for i, g := range b.Groups[:min(len(b.Groups), MostGroups)] {
		twice := slices.ContainsFunc(b.Groups[:i], func(o Group) bool { return o.Name == g.Name })
		all.group(b, g, b.path(i), twice)
	}
	return all
}

// path is the path of a node group in the body of a request.
func (b Blueprint) path(i int) string {
	if b.Exists {
		return ""
	}
	return fmt.Sprintf("nodeGroups[%d].", i)
}

type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{field, fmt.Sprintf(format, args...)})
}

// has reports whether something is wrong with a field or a part of it.
func (p problems) has(field string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return one.Field == field || strings.HasPrefix(one.Field, field+"[") })
}

// existing checks what a node group needs of a cluster that is there.
func (p *problems) existing(b Blueprint) {
	if !isName(b.Name, v1alpha1.MaxClusterName) {
		p.add("clusterName", "invalid cluster name %.120q: must be the name of a cluster", b.Name)
	}
	if len(b.SubnetIDs) == 0 {
		p.add("subnetIds", "choose a subnet or more of the cluster's VPC")
	}
	if len(b.Groups) == 0 {
		p.add("nodeGroups", "there is no node group to make")
	}
}

// cluster checks a cluster that is to be made.
func (p *problems) cluster(b Blueprint) {
	if !isName(b.Name, v1alpha1.MaxClusterName) {
		p.add("name", "invalid cluster name %.120q: must begin with a letter or digit and be of at most %d letters, digits, - and _", b.Name, v1alpha1.MaxClusterName)
	}
	if _, err := release.All().OfMinor(b.Version); err != nil {
		p.add("version", "%v", err)
	}
	if !rolePattern.MatchString(b.RoleARN) {
		p.add("roleArn", "invalid role %.300q: must be the ARN of an IAM role that trusts eks.amazonaws.com and has the policy AmazonEKSClusterPolicy", b.RoleARN)
	}
	if len(b.SubnetIDs) < leastSubnets {
		p.add("subnetIds", "choose %d subnets or more, in two availability zones", leastSubnets)
	}
	for i, name := range b.Addons {
		switch _, known := catalogue.New().Find(name); {
		case !known:
			p.add(fmt.Sprintf("addons[%d]", i), "unknown add-on %.80q: muster create addon --help lists them", name)
		case slices.Contains(b.Addons[:i], name):
			p.add(fmt.Sprintf("addons[%d]", i), "add-on %s is there twice", name)
		case b.AutoMode && name == karpenter.Name:
			p.add(fmt.Sprintf("addons[%d]", i), "EKS Auto Mode runs Karpenter in the control plane: leave the add-on out")
		}
	}
	switch {
	case b.AutoMode && !rolePattern.MatchString(b.AutoNodeRole):
		p.add("autoNodeRole", "invalid role %.300q: must be the ARN of an IAM role that trusts ec2.amazonaws.com, for the machines of EKS Auto Mode", b.AutoNodeRole)
	case !b.AutoMode && b.AutoNodeRole != "":
		p.add("autoNodeRole", "only machines of EKS Auto Mode have this role: leave it out")
	}
	p.kinds(v1alpha1.ValidateCluster(b.object()), "", map[string]string{
		"spec.name": "name", "spec.version": "version", "spec.eks.roleARN": "roleArn", "spec.network.subnetIDs": "subnetIds", "spec.eks.loggingTypes": "loggingTypes",
		"spec.compute.nodeRole": "autoNodeRole",
	})
}

// group checks a node group.
func (p *problems) group(b Blueprint, g Group, at string, twice bool) {
	switch {
	case !isName(g.Name, v1alpha1.MaxNodeGroupName):
		p.add(at+"name", "invalid node group name %.80q: must begin with a letter or digit and be of at most %d letters, digits, - and _", g.Name, v1alpha1.MaxNodeGroupName)
	case twice:
		p.add(at+"name", "node group %s is there twice", g.Name)
	}
	if len(g.InstanceTypes) == 0 {
		p.add(at+"instanceTypes", "name an instance type, such as %s", instancetype.Default)
	}
	for i, name := range g.InstanceTypes {
		if _, err := instancetype.Find(name); err != nil {
			p.add(fmt.Sprintf("%sinstanceTypes[%d]", at, i), "instance type %.40q does not exist: aws ec2 describe-instance-types lists them", name)
		}
	}
	if g.MaxSize < 1 {
		p.add(at+"maxSize", "invalid maximum %d: must be 1 or more", g.MaxSize)
	}
	if g.DiskSize < v1alpha1.MinDisk || g.DiskSize > v1alpha1.MaxDisk {
		p.add(at+"diskSize", "invalid disk size %d: must be from %d to %d GiB", g.DiskSize, v1alpha1.MinDisk, v1alpha1.MaxDisk)
	}
	if g.capacity() != OnDemand {
		p.add(at+"capacityType", "invalid capacity type %.40q: must be %s, there are no other machines here", g.CapacityType, OnDemand)
	}
	if g.NodeRole != "" && !rolePattern.MatchString(g.NodeRole) {
		p.add(at+"nodeRole", "invalid role %.300q: must be the ARN of an IAM role that trusts ec2.amazonaws.com, or empty for the cluster's own", g.NodeRole)
	}
	for key := range g.Labels {
		if strings.HasPrefix(key, nodegroupspec.ManagedPrefix) {
			p.add(at+"labels", "invalid label %.80q: names below %s are EKS's own", key, nodegroupspec.ManagedPrefix)
		}
	}
	p.kinds(v1alpha1.ValidateNodeGroup(b.groupObject(g)), at, map[string]string{
		"spec.name": "name", "spec.instanceTypes": "instanceTypes", "spec.scalingConfig.minSize": "minSize", "spec.scalingConfig.desiredSize": "desiredSize",
		"spec.scalingConfig.maxSize": "maxSize", "spec.eks.diskSize": "diskSize", "spec.labels": "labels", "spec.nodeRole": "nodeRole",
		"spec.subnetIDs": "/subnetIds",
	})
}

// kinds adds what the rules of a kind say of fields that nothing was said of. A field that begins with a slash is the blueprint's own.
func (p *problems) kinds(wrong field.ErrorList, at string, names map[string]string) {
	said := *p
	for _, one := range wrong {
		path, index, indexed := strings.Cut(one.Field, "[")
		name, ours := names[path]
		if own, is := strings.CutPrefix(name, "/"); is {
			name = own
		} else {
			name = at + name
		}
		switch {
		case strings.HasPrefix(one.Field, "metadata."): // names that follow from spec.name
			continue
		case !ours:
			name = strings.TrimSuffix(at, ".")
		case said.has(name):
			continue
		case indexed && path != "spec.labels":
			name += "[" + index
		}
		p.add(name, "%s", strings.TrimPrefix(one.Error(), one.Field+": "))
	}
}
