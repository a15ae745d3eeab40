// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// likeTheModules overrides what the example says otherwise than the community's modules for EKS and VPCs,
// terraform-aws-modules/eks and /vpc, send with their defaults: machines are in the nodes' group alone, which lets in
// what the module's rules name, and reach the API server at port 443 of the cluster's other group; a third of a group
// may be away; the default network ACL has rules for IPv6; nodes are labelled by their group.
const likeTheModules = `
resource "aws_security_group" "cluster" {
  name_prefix = "${var.name}-cluster-"
  description = "EKS cluster security group"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-cluster" })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_security_group_rule" "cluster" {
  security_group_id        = aws_security_group.cluster.id
  type                     = "ingress"
  description              = "Node groups to cluster API"
  protocol                 = "tcp"
  from_port                = 443
  to_port                  = 443
  source_security_group_id = aws_security_group.node.id
}

locals {
  from_cluster = { "443" = "groups", "4443" = "webhook", "6443" = "webhook", "8443" = "webhook", "9443" = "webhook", "10250" = "kubelets" }
}

resource "aws_security_group_rule" "from_cluster" {
  for_each                 = local.from_cluster
  security_group_id        = aws_security_group.node.id
  type                     = "ingress"
  description              = "Cluster API to node ${each.key}/tcp ${each.value}"
  protocol                 = "tcp"
  from_port                = tonumber(each.key)
  to_port                  = tonumber(each.key)
  source_security_group_id = aws_security_group.cluster.id
}

resource "aws_security_group_rule" "dns" {
  for_each          = toset(["tcp", "udp"])
  security_group_id = aws_security_group.node.id
  type              = "ingress"
  description       = "Node to node CoreDNS ${upper(each.key)}"
  protocol          = each.key
  from_port         = 53
  to_port           = 53
  self              = true
}
`

// overModules has Terraform merge these into the example's resources, since the file's name ends so.
const overModules = `
resource "aws_eks_cluster" "this" {
  vpc_config {
    subnet_ids              = aws_subnet.private[*].id
    security_group_ids      = [aws_security_group.cluster.id]
    endpoint_public_access  = true
    endpoint_private_access = true
  }
}

resource "aws_security_group_rule" "node_to_node" {
  description = "Node to node ingress on ephemeral ports"
  protocol    = "tcp"
  from_port   = 1025
  to_port     = 65535
}

resource "aws_vpc_security_group_ingress_rule" "kubelet" {
  from_port                    = 9000
  to_port                      = 9000
  referenced_security_group_id = aws_security_group.cluster.id
}

resource "aws_launch_template" "node" {
  vpc_security_group_ids = [aws_security_group.node.id]
}

resource "aws_eks_node_group" "this" {
  update_config {
    max_unavailable_percentage = 33
  }
}

resource "aws_default_network_acl" "this" {
  ingress {
    rule_no    = 100
    action     = "allow"
    protocol   = "-1"
    cidr_block = "0.0.0.0/0"
    from_port  = 0
    to_port    = 0
  }

  ingress {
    rule_no         = 101
    action          = "allow"
    protocol        = "-1"
    ipv6_cidr_block = "::/0"
    from_port       = 0
    to_port         = 0
  }

  egress {
    rule_no    = 100
    action     = "allow"
    protocol   = "-1"
    cidr_block = "0.0.0.0/0"
    from_port  = 0
    to_port    = 0
  }

  egress {
    rule_no         = 101
    action          = "allow"
    protocol        = "-1"
    ipv6_cidr_block = "::/0"
    from_port       = 0
    to_port         = 0
  }
}
`

// TestTerraformLikeTheModules makes a cluster with the requests that the community's modules send, plans it empty, and
// destroys it. CoreDNS is ACTIVE only if its pods reach the API server through the groups that these modules make.
//
//story:about cloud ./examples network/vpc network/securitygroup machine/nodegroup
func TestTerraformLikeTheModules(t *testing.T) {
	t.Parallel()
	tf := newTerraformOf(t, func(dir string, example map[string][]byte) {
		writeModule(t, dir, example)
		writeModule(t, dir, map[string][]byte{"modules.tf": []byte(likeTheModules), "modules_override.tf": []byte(overModules)})
	})
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	tf.as = w

	tf.made()
	tf.nothingToDo()
	tf.nodes()
	selected, err := w.run(w.admin, filepath.Join(w.bin, "kubectl"), "--kubeconfig", tf.kubeconfig, "get", "nodes", "-o", "name",
		"-l", "eks.amazonaws.com/nodegroup=web,eks.amazonaws.com/capacityType=ON_DEMAND,eks.amazonaws.com/sourceLaunchTemplateId")
	if err != nil || len(strings.Fields(selected)) != 1 {
		t.Errorf("nodes of the group by EKS's labels: %q, %v", selected, err)
	}
	tf.destroyed()
	w.eventually("there is what there was before", func() error {
		if after := w.whatThereIs(); after != before {
			return fmt.Errorf("before:\n%s\nafter destroy:\n%s", before, after)
		}
		return nil
	})
}
